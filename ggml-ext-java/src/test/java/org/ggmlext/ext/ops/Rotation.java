package org.ggmlext.ext.ops;

/** The rotation of ConvRot in double precision, by its definition: a dense matrix a group. */
public final class Rotation {
  private static final double[][] H4 = {
    {0.5, 0.5, 0.5, -0.5}, {0.5, 0.5, -0.5, 0.5}, {0.5, -0.5, 0.5, 0.5}, {-0.5, 0.5, 0.5, 0.5}
  };

  private Rotation() {}

  /** Element (i, j) of the Kronecker power of H4 with this many rows. */
  static double element(int size, int i, int j) {
    double product = 1;
    for (int block = size / 4; block >= 1; block /= 4) {
      product *= H4[i / block % 4][j / block % 4];
    }
    return product;
  }

  /** One row, each group of features multiplied by the matrix. */
  public static double[] rotate(double[] row, int group) {
    double[] rotated = new double[row.length];
    for (int i = 0; i < row.length; i++) {
      int begin = i - i % group;
      for (int j = 0; j < group; j++) {
        rotated[i] += element(group, i % group, j) * row[begin + j];
      }
    }
    return rotated;
  }
}
