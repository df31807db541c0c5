package org.ggmlext.vector;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/** How vectors are cut out of rows. */
final class Lanes {
  static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
  static final int LENGTH = SPECIES.length();
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();

  private Lanes() {}

  static FloatVector load(MemorySegment row, long offset, int i) {
    return FloatVector.fromMemorySegment(SPECIES, row, offset + 4L * i, ORDER);
  }

  /** Elements from i up to n; zero where there are none. */
  static FloatVector loadTail(MemorySegment row, long offset, int i, int n) {
    return FloatVector.fromMemorySegment(SPECIES, row, offset + 4L * i, ORDER, tail(i, n));
  }

  static void store(FloatVector v, MemorySegment row, long offset, int i) {
    v.intoMemorySegment(row, offset + 4L * i, ORDER);
  }

  static void storeTail(FloatVector v, MemorySegment row, long offset, int i, int n) {
    v.intoMemorySegment(row, offset + 4L * i, ORDER, tail(i, n));
  }

  static VectorMask<Float> tail(int i, int n) {
    return SPECIES.indexInRange(i, n);
  }
}
