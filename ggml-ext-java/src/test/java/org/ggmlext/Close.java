package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.function.IntToDoubleFunction;

/** Compares results with references in double precision. */
final class Close {
  private Close() {}

  /** Each value is near its reference, relative to the larger of 1 and the reference. */
  static void assertNear(float[] actual, IntToDoubleFunction expected, double tolerance) {
    for (int i = 0; i < actual.length; i++) {
      double reference = expected.applyAsDouble(i);
      assertThat((double) actual[i])
          .as("element %d", i)
          .isCloseTo(reference, within(tolerance * Math.max(1, Math.abs(reference))));
    }
  }
}
