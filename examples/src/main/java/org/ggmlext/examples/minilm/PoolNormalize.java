package org.ggmlext.examples.minilm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.Task;
import org.ggmlext.ext.TensorInfo;
import org.ggmlext.ext.TensorView;

/**
 * An operator that ggml does not have, with a kernel in Java: {@code minilm.pool_normalize.v1(x[n,
 * L, B] F32, lengths[B] I32)} gives {@code [n, B]}, for each sequence the mean of its first {@code
 * lengths[b]} rows, scaled to length 1. Padding is not read.
 */
final class PoolNormalize {

  static final Operator<NoAttributes> OPERATOR =
      Operator.of("minilm.pool_normalize.v1", (sources, attributes) -> infer(sources));

  static final Kernel KERNEL =
      Kernel.rows("minilm.pool_normalize.java", OPERATOR, PoolNormalize::run);

  private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();

  private PoolNormalize() {}

  private static OutputSpec infer(List<TensorInfo> sources) {
    if (sources.size() != 2) {
      throw new IllegalArgumentException(
          "pool_normalize takes x and lengths, not " + sources.size() + " sources");
    }
    TensorInfo x = sources.get(0);
    TensorInfo lengths = sources.get(1);
    if (!x.is(Type.F32) || !x.isContiguous() || x.ne(3) != 1 || x.ne(0) % SPECIES.length() != 0) {
      throw new IllegalArgumentException(
          "x is " + x + ", expected contiguous F32 [n, L, B], n a multiple of " + SPECIES.length());
    }
    if (!lengths.is(Type.I32) || !lengths.isContiguous() || lengths.elements() != x.ne(2)) {
      throw new IllegalArgumentException(
          "lengths is " + lengths + ", expected I32 [" + x.ne(2) + "]");
    }
    return OutputSpec.of(Type.F32, x.ne(0), x.ne(2));
  }

  private static void run(Task task, long first, long end) {
    TensorView x = task.src(0);
    MemorySegment lengths = task.src(1).data();
    for (long sequence = first; sequence < end; sequence++) {
      int length = lengths.getAtIndex(ValueLayout.JAVA_INT, sequence);
      if (length < 1 || length > x.ne(1)) {
        throw new IllegalArgumentException(
            "length " + sequence + " is " + length + ", expected 1 to " + x.ne(1));
      }
      poolRow(
          x.data(),
          sequence * x.nb(2),
          length,
          Math.toIntExact(x.ne(0)),
          task.dst().data(),
          task.dst().rowOffset(sequence));
    }
  }

  // The mean's division by the length is left out: scaling to length 1 undoes it.
  private static void poolRow(
      MemorySegment x, long start, int length, int n, MemorySegment dst, long row) {
    FloatVector squares = FloatVector.zero(SPECIES);
    for (int i = 0; i < n; i += SPECIES.length()) {
      FloatVector sum = FloatVector.zero(SPECIES);
      long offset = start + 4L * i;
      for (int t = 0; t < length; t++) {
        sum = sum.add(FloatVector.fromMemorySegment(SPECIES, x, offset + 4L * n * t, ORDER));
      }
      sum.intoMemorySegment(dst, row + 4L * i, ORDER);
      squares = sum.fma(sum, squares);
    }
    float norm = (float) Math.sqrt(squares.reduceLanes(VectorOperators.ADD));
    float factor = norm > 0 ? 1 / norm : 0;
    for (int i = 0; i < n; i += SPECIES.length()) {
      FloatVector.fromMemorySegment(SPECIES, dst, row + 4L * i, ORDER)
          .mul(factor)
          .intoMemorySegment(dst, row + 4L * i, ORDER);
    }
  }
}
