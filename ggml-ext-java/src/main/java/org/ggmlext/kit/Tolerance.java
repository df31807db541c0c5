package org.ggmlext.kit;

/**
 * How far a value may be from the expected one: {@code |got - want| <= absolute + relative *
 * |want|}. NaN and infinities must be where they are expected.
 *
 * @param absolute at least 0
 * @param relative at least 0
 */
public record Tolerance(double absolute, double relative) {
  /** No difference at all. */
  public static final Tolerance EXACT = new Tolerance(0, 0);

  public Tolerance {
    if (!(absolute >= 0) || !(relative >= 0)) {
      throw new IllegalArgumentException(
          "a tolerance is at least 0, not %s absolute, %s relative".formatted(absolute, relative));
    }
  }

  boolean accepts(double got, double want) {
    return Difference.sameSpecial(got, want)
        || Math.abs(got - want) <= absolute + relative * Math.abs(want);
  }
}
