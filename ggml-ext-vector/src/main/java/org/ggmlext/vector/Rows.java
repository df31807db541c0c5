package org.ggmlext.vector;

import static org.ggmlext.vector.Lanes.LENGTH;
import static org.ggmlext.vector.Lanes.SPECIES;
import static org.ggmlext.vector.Lanes.load;
import static org.ggmlext.vector.Lanes.loadTail;
import static org.ggmlext.vector.Lanes.store;
import static org.ggmlext.vector.Lanes.storeTail;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;

/**
 * Element by element arithmetic on rows of F32. A row is a segment and the offset in bytes where it
 * begins; its {@code n} elements follow each other. A result may be written over a row that it is
 * computed from, at the same offset; other overlaps give wrong results. Ranges that a segment does
 * not hold throw {@link IndexOutOfBoundsException}.
 */
public final class Rows {
  private Rows() {}

  /** {@code out = a + b}. */
  public static void add(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int n) {
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(load(a, aOffset, i).add(load(b, bOffset, i)), out, outOffset, i);
    }
    if (i < n) {
      FloatVector sum = loadTail(a, aOffset, i, n).add(loadTail(b, bOffset, i, n));
      storeTail(sum, out, outOffset, i, n);
    }
  }

  /** {@code out = a * b}. */
  public static void mul(
      MemorySegment a,
      long aOffset,
      MemorySegment b,
      long bOffset,
      MemorySegment out,
      long outOffset,
      int n) {
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(load(a, aOffset, i).mul(load(b, bOffset, i)), out, outOffset, i);
    }
    if (i < n) {
      FloatVector product = loadTail(a, aOffset, i, n).mul(loadTail(b, bOffset, i, n));
      storeTail(product, out, outOffset, i, n);
    }
  }

  /** {@code out = x * factor + shift}. */
  public static void scale(
      MemorySegment x,
      long xOffset,
      MemorySegment out,
      long outOffset,
      int n,
      float factor,
      float shift) {
    FloatVector factors = FloatVector.broadcast(SPECIES, factor);
    FloatVector shifts = FloatVector.broadcast(SPECIES, shift);
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(load(x, xOffset, i).fma(factors, shifts), out, outOffset, i);
    }
    if (i < n) {
      storeTail(loadTail(x, xOffset, i, n).fma(factors, shifts), out, outOffset, i, n);
    }
  }

  /** {@code out = out + factor * x}. */
  public static void addScaled(
      MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n, float factor) {
    FloatVector factors = FloatVector.broadcast(SPECIES, factor);
    int i = 0;
    for (int end = SPECIES.loopBound(n); i < end; i += LENGTH) {
      store(load(x, xOffset, i).fma(factors, load(out, outOffset, i)), out, outOffset, i);
    }
    if (i < n) {
      FloatVector sum = loadTail(x, xOffset, i, n).fma(factors, loadTail(out, outOffset, i, n));
      storeTail(sum, out, outOffset, i, n);
    }
  }
}
