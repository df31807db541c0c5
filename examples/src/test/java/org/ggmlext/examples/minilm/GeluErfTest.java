package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class GeluErfTest {

  @Test
  @DisplayName("KERNEL-5: the Java GELU_ERF is within float rounding of double precision")
  void isExactWithinRounding() {
    // An odd length: the last vector is not full.
    float[] x = new float[24_001];
    for (int i = 0; i < x.length; i++) {
      x[i] = (i - 12_000) / 1000f;
    }

    float[] y = gelu(x);

    for (int i = 0; i < x.length; i++) {
      double expected = x[i] / 2.0 * (1 + erf(x[i] / Math.sqrt(2)));
      assertThat((double) y[i]).as("gelu(%s)", x[i]).isCloseTo(expected, within(x[i]));
    }
  }

  @Test
  @DisplayName("KERNEL-5: the Java GELU_ERF of large, infinite and NaN values is ggml's")
  void keepsSpecialValues() {
    float[] y =
        gelu(new float[] {Float.NaN, Float.POSITIVE_INFINITY, 1e30f, -1e30f, -0f, Float.MIN_VALUE});

    assertThat(y[0]).isNaN();
    assertThat(y[1]).isEqualTo(Float.POSITIVE_INFINITY);
    assertThat(y[2]).isEqualTo(1e30f);
    assertThat(y[3]).isZero();
    assertThat(y[4]).isZero();
    assertThat(y[5]).isBetween(0f, Float.MIN_VALUE);
  }

  private static Offset<Double> within(float x) {
    return Offset.offset(3e-7 * Math.max(1, Math.abs(x)));
  }

  private static float[] gelu(float[] x) {
    float[] y = new float[x.length];
    GeluErf.gelu(MemorySegment.ofArray(x), 0, MemorySegment.ofArray(y), 0, x.length);
    return y;
  }

  // The Taylor series; its terms cancel, but no further than to 1e-9 for |x| < 4.3.
  private static double erf(double x) {
    if (Math.abs(x) > 4.3) {
      return Math.signum(x);
    }
    double sum = 0;
    double term = x;
    for (int n = 0; Math.abs(term) > 1e-18; n++) {
      sum += term / (2 * n + 1);
      term *= -x * x / (n + 1);
    }
    return 2 / Math.sqrt(Math.PI) * sum;
  }
}
