package org.ggmlext.vector;

import static org.ggmlext.vector.Lanes.LENGTH;
import static org.ggmlext.vector.Lanes.SPECIES;
import static org.ggmlext.vector.Lanes.load;
import static org.ggmlext.vector.Lanes.loadTail;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Sums and maxima of rows of F32, accumulated in F32 by several partial sums; rows are given as in
 * {@link Rows}.
 */
public final class Reductions {
  private static final int UNROLL = 4;

  private Reductions() {}

  /** The dot product of two rows. */
  public static float dot(MemorySegment a, long aOffset, MemorySegment b, long bOffset, int n) {
    FloatVector s0 = FloatVector.zero(SPECIES);
    FloatVector s1 = s0;
    FloatVector s2 = s0;
    FloatVector s3 = s0;
    int i = 0;
    for (int end = n - n % (UNROLL * LENGTH); i < end; i += UNROLL * LENGTH) {
      s0 = load(a, aOffset, i).fma(load(b, bOffset, i), s0);
      s1 = load(a, aOffset, i + LENGTH).fma(load(b, bOffset, i + LENGTH), s1);
      s2 = load(a, aOffset, i + 2 * LENGTH).fma(load(b, bOffset, i + 2 * LENGTH), s2);
      s3 = load(a, aOffset, i + 3 * LENGTH).fma(load(b, bOffset, i + 3 * LENGTH), s3);
    }
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      s0 = load(a, aOffset, i).fma(load(b, bOffset, i), s0);
    }
    if (i < n) {
      s1 = loadTail(a, aOffset, i, n).fma(loadTail(b, bOffset, i, n), s1);
    }
    return s0.add(s1).add(s2.add(s3)).reduceLanes(VectorOperators.ADD);
  }

  /** The sum of a row. */
  public static float sum(MemorySegment x, long offset, int n) {
    FloatVector s0 = FloatVector.zero(SPECIES);
    FloatVector s1 = s0;
    int i = 0;
    for (int end = n - n % (2 * LENGTH); i < end; i += 2 * LENGTH) {
      s0 = s0.add(load(x, offset, i));
      s1 = s1.add(load(x, offset, i + LENGTH));
    }
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      s0 = s0.add(load(x, offset, i));
    }
    if (i < n) {
      s1 = s1.add(loadTail(x, offset, i, n));
    }
    return s0.add(s1).reduceLanes(VectorOperators.ADD);
  }

  /** The sum of {@code x^2}. */
  public static float sumSquares(MemorySegment x, long offset, int n) {
    FloatVector s0 = FloatVector.zero(SPECIES);
    FloatVector s1 = s0;
    FloatVector s2 = s0;
    FloatVector s3 = s0;
    int i = 0;
    for (int end = n - n % (UNROLL * LENGTH); i < end; i += UNROLL * LENGTH) {
      FloatVector x0 = load(x, offset, i);
      FloatVector x1 = load(x, offset, i + LENGTH);
      FloatVector x2 = load(x, offset, i + 2 * LENGTH);
      FloatVector x3 = load(x, offset, i + 3 * LENGTH);
      s0 = x0.fma(x0, s0);
      s1 = x1.fma(x1, s1);
      s2 = x2.fma(x2, s2);
      s3 = x3.fma(x3, s3);
    }
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      FloatVector rest = load(x, offset, i);
      s0 = rest.fma(rest, s0);
    }
    if (i < n) {
      FloatVector tail = loadTail(x, offset, i, n);
      s1 = tail.fma(tail, s1);
    }
    return s0.add(s1).add(s2.add(s3)).reduceLanes(VectorOperators.ADD);
  }

  /** The sum of {@code (x - center)^2}. */
  public static float sumSquares(MemorySegment x, long offset, int n, float center) {
    FloatVector s0 = FloatVector.zero(SPECIES);
    FloatVector s1 = s0;
    int i = 0;
    for (int end = n - n % (2 * LENGTH); i < end; i += 2 * LENGTH) {
      FloatVector d0 = load(x, offset, i).sub(center);
      FloatVector d1 = load(x, offset, i + LENGTH).sub(center);
      s0 = d0.fma(d0, s0);
      s1 = d1.fma(d1, s1);
    }
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      FloatVector d = load(x, offset, i).sub(center);
      s0 = d.fma(d, s0);
    }
    if (i < n) {
      FloatVector d = loadTail(x, offset, i, n).sub(center, Lanes.tail(i, n));
      s1 = d.fma(d, s1);
    }
    return s0.add(s1).reduceLanes(VectorOperators.ADD);
  }

  /** The largest element of a row; negative infinity for an empty one, NaN if one is NaN. */
  public static float max(MemorySegment x, long offset, int n) {
    FloatVector max = FloatVector.broadcast(SPECIES, Float.NEGATIVE_INFINITY);
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      max = max.max(load(x, offset, i));
    }
    if (i < n) {
      max = max.lanewise(VectorOperators.MAX, loadTail(x, offset, i, n), Lanes.tail(i, n));
    }
    return max.reduceLanes(VectorOperators.MAX);
  }
}
