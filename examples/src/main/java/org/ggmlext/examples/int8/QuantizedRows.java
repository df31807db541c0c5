package org.ggmlext.examples.int8;

/**
 * Rows of weights in INT8: each group of features rotated, then each row divided by its scale and
 * rounded. Rotated activations times these rows give what the activations times the given rows do,
 * up to rounding, since the rotation is its own inverse.
 *
 * @param values the rows, one after the other
 * @param scales what a row's values are to be multiplied by: its largest absolute value / 127
 */
public record QuantizedRows(byte[] values, float[] scales) {
  private static final int LARGEST = 127;

  /** The largest group, up to a limit, that divides a number of features: 256, 64, 16, 4 or 1. */
  public static int group(int features, int limit) {
    int group = 256;
    while (group > 1 && (group > limit || features % group != 0)) {
      group /= 4;
    }
    return group;
  }

  /**
   * Quantises rows; the arithmetic is in double precision.
   *
   * @param rows finite values, one row after the other
   * @param features values of a row
   * @param group features that are rotated together: 1, 4, 16, 64 or 256; divides {@code features}
   * @throws IllegalArgumentException if the sizes do not fit, or a value is not finite
   */
  public static QuantizedRows of(float[] rows, int features, int group) {
    if (features < 1 || rows.length % features != 0 || group != group(features, group)) {
      throw new IllegalArgumentException(
          "%d values as rows of %d features in groups of %d"
              .formatted(rows.length, features, group));
    }
    int count = rows.length / features;
    byte[] values = new byte[rows.length];
    float[] scales = new float[count];
    double[] row = new double[features];
    for (int n = 0; n < count; n++) {
      double largest = 0;
      for (int k = 0; k < features; k++) {
        row[k] = rows[n * features + k];
        if (!Double.isFinite(row[k])) {
          throw new IllegalArgumentException("value %d of row %d is %s".formatted(k, n, row[k]));
        }
      }
      rotate(row, group);
      for (double value : row) {
        largest = Math.max(largest, Math.abs(value));
      }
      scales[n] = (float) (largest / LARGEST);
      for (int k = 0; k < features && scales[n] > 0; k++) {
        double rounded = Math.rint(row[k] / scales[n]);
        values[n * features + k] = (byte) Math.clamp(rounded, -LARGEST, LARGEST);
      }
    }
    return new QuantizedRows(values, scales);
  }

  /** Four values at a distance are rotated, then those at four times the distance, and so on. */
  private static void rotate(double[] row, int group) {
    for (int distance = 1; distance < group; distance *= 4) {
      for (int begin = 0; begin < row.length; begin += 4 * distance) {
        for (int i = begin; i < begin + distance; i++) {
          double a = row[i];
          double b = row[i + distance];
          double c = row[i + 2 * distance];
          double d = row[i + 3 * distance];
          row[i] = (a + b + c - d) / 2;
          row[i + distance] = (a + b - c + d) / 2;
          row[i + 2 * distance] = (a - b + c + d) / 2;
          row[i + 3 * distance] = (-a + b + c + d) / 2;
        }
      }
    }
  }
}
