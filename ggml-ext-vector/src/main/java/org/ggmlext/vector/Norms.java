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

/** Normalisations of one row of F32; rows are given as in {@link Rows}. */
public final class Norms {
  private Norms() {}

  /** {@code out = x / sqrt(mean(x^2) + eps)}. */
  public static void rmsNorm(
      MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n, float eps) {
    float mean = Reductions.sumSquares(x, xOffset, n) / n;
    Rows.scale(x, xOffset, out, outOffset, n, (float) (1 / Math.sqrt(mean + eps)), 0);
  }

  /** {@code out = (x - mean(x)) / sqrt(variance(x) + eps)}. */
  public static void layerNorm(
      MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n, float eps) {
    float mean = Reductions.sum(x, xOffset, n) / n;
    float variance = Reductions.sumSquares(x, xOffset, n, mean) / n;
    float factor = (float) (1 / Math.sqrt(variance + eps));
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(load(x, xOffset, i).sub(mean).mul(factor), out, outOffset, i);
    }
    if (i < n) {
      storeTail(loadTail(x, xOffset, i, n).sub(mean).mul(factor), out, outOffset, i, n);
    }
  }

  /**
   * {@code out = exp(x * scale - max) / sum}. The largest element may be negative infinity only
   * where all are; the result is then NaN, as in ggml.
   */
  public static void softmax(
      MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n, float scale) {
    Rows.scale(x, xOffset, out, outOffset, n, scale, 0);
    float max = Reductions.max(out, outOffset, n);
    FloatVector sum = FloatVector.zero(SPECIES);
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      FloatVector e = load(out, outOffset, i).sub(max).lanewise(VectorOperators.EXP);
      store(e, out, outOffset, i);
      sum = sum.add(e);
    }
    if (i < n) {
      FloatVector e = loadTail(out, outOffset, i, n).sub(max).lanewise(VectorOperators.EXP);
      storeTail(e, out, outOffset, i, n);
      sum = sum.add(e, Lanes.tail(i, n));
    }
    Rows.scale(out, outOffset, out, outOffset, n, 1 / sum.reduceLanes(VectorOperators.ADD), 0);
  }
}
