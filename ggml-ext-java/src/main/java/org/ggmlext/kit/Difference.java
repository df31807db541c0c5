package org.ggmlext.kit;

/**
 * How far values are from the expected ones.
 *
 * @param maxAbsolute the largest {@code |got - want|}; infinite where one is NaN or infinite and
 *     the other is not the same
 * @param maxRelative the largest {@code |got - want| / max(|got|, |want|)}
 * @param worst number of the element with the largest absolute error, in ggml's order
 * @param got that element's value
 * @param want what it should be
 */
public record Difference(
    double maxAbsolute, double maxRelative, int worst, double got, double want) {

  /** Compares arrays of the same length. */
  static Difference of(double[] got, double[] want) {
    if (got.length != want.length) {
      throw new IllegalArgumentException(
          "the output has %d elements, %d are expected".formatted(got.length, want.length));
    }
    double maxAbsolute = 0;
    double maxRelative = 0;
    int worst = 0;
    for (int i = 0; i < got.length; i++) {
      double error = error(got[i], want[i]);
      if (error > maxAbsolute) {
        maxAbsolute = error;
        worst = i;
      }
      if (error > 0) {
        double scale = Math.max(Math.abs(got[i]), Math.abs(want[i]));
        maxRelative = Math.max(maxRelative, Double.isInfinite(error) ? error : error / scale);
      }
    }
    return new Difference(maxAbsolute, maxRelative, worst, got[worst], want[worst]);
  }

  private static double error(double got, double want) {
    if (sameSpecial(got, want)) {
      return 0;
    }
    double error = Math.abs(got - want);
    return Double.isNaN(error) ? Double.POSITIVE_INFINITY : error;
  }

  /** Whether both are NaN, or equal (infinities included). */
  static boolean sameSpecial(double got, double want) {
    return got == want || Double.isNaN(got) && Double.isNaN(want);
  }

  @Override
  public String toString() {
    return "max error %.3g absolute, %.3g relative".formatted(maxAbsolute, maxRelative);
  }
}
