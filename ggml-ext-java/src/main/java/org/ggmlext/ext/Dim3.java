package org.ggmlext.ext;

/**
 * Extents of a CUDA grid, in blocks, or of a block, in threads.
 *
 * @param x along the first dimension, at least 1
 * @param y along the second one
 * @param z along the third one
 */
public record Dim3(int x, int y, int z) {
  public Dim3 {
    if (x < 1 || y < 1 || z < 1) {
      throw new IllegalArgumentException(
          "extents %d x %d x %d, expected at least 1 each".formatted(x, y, z));
    }
  }

  /** One dimension. */
  public static Dim3 of(int x) {
    return new Dim3(x, 1, 1);
  }

  /** Two dimensions. */
  public static Dim3 of(int x, int y) {
    return new Dim3(x, y, 1);
  }

  /**
   * As many blocks in one dimension as give each of {@code count} things a thread of its own.
   *
   * @param count at least 1
   * @param threadsPerBlock threads of a block
   * @throws IllegalArgumentException if these are more blocks than a grid can have
   */
  public static Dim3 covering(long count, int threadsPerBlock) {
    if (count < 1 || threadsPerBlock < 1) {
      throw new IllegalArgumentException(
          "%d things and %d threads a block, expected at least 1 each"
              .formatted(count, threadsPerBlock));
    }
    long blocks = (count - 1) / threadsPerBlock + 1;
    if (blocks > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "%d things need %d blocks of %d threads, more than a grid can have"
              .formatted(count, blocks, threadsPerBlock));
    }
    return of((int) blocks);
  }

  /** The product of all three; {@link Long#MAX_VALUE} where it is larger. */
  public long volume() {
    long plane = (long) x * y;
    return plane > Long.MAX_VALUE / z ? Long.MAX_VALUE : plane * z;
  }

  /** Such as {@code 32 x 4 x 1}. */
  @Override
  public String toString() {
    return x + " x " + y + " x " + z;
  }
}
