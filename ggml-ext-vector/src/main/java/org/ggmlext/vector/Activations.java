package org.ggmlext.vector;

import static org.ggmlext.vector.Lanes.LENGTH;
import static org.ggmlext.vector.Lanes.SPECIES;
import static org.ggmlext.vector.Lanes.load;
import static org.ggmlext.vector.Lanes.loadTail;
import static org.ggmlext.vector.Lanes.store;
import static org.ggmlext.vector.Lanes.storeTail;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/** Activation functions on rows of F32; rows are given as in {@link Rows}. */
public final class Activations {
  private static final float SQRT_2_OVER_PI = 0.79788456080286535588f;
  private static final float GELU_CUBIC = 0.044715f;

  private Activations() {}

  /** {@code out = x / (1 + exp(-x))}. */
  public static void silu(MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n) {
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(silu(load(x, xOffset, i)), out, outOffset, i);
    }
    if (i < n) {
      storeTail(silu(loadTail(x, xOffset, i, n)), out, outOffset, i, n);
    }
  }

  private static FloatVector silu(FloatVector x) {
    return x.div(x.neg().lanewise(VectorOperators.EXP).add(1f));
  }

  /** GELU by its tanh approximation: {@code x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))}. */
  public static void gelu(MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n) {
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(gelu(load(x, xOffset, i)), out, outOffset, i);
    }
    if (i < n) {
      storeTail(gelu(loadTail(x, xOffset, i, n)), out, outOffset, i, n);
    }
  }

  private static FloatVector gelu(FloatVector x) {
    // x/2 (1 + tanh u) = x / (1 + exp(-2u))
    FloatVector u = x.mul(x).mul(GELU_CUBIC).add(1f).mul(x).mul(SQRT_2_OVER_PI);
    return x.div(u.mul(-2f).lanewise(VectorOperators.EXP).add(1f));
  }
}
