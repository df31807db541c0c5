package org.ggmlext.examples.minilm;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorSpecies;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.Support;
import org.ggmlext.ext.Task;

/**
 * An override of ggml's own GELU_ERF, in Java: {@code y = x / 2 * (1 + erf(x / sqrt(2)))}. ggml
 * calls the C library's erf for every element; this computes a vector of them at once.
 */
final class GeluErf {

  static final Kernel KERNEL =
      Kernel.builder("minilm.gelu_erf.java", "UNARY")
          .supports(GeluErf::supports)
          .rows(GeluErf::run);

  private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();

  private static final float SQRT_HALF = 0.70710678f;

  // erf(x) = x P(x^2) / Q(x^2) within 3e-8 on [-4, 4], where erf(4) rounds to 1: a rational
  // function
  // fitted by least squares, reweighted towards the smallest maximum; lowest power first, Q(0) = 1.
  private static final float ERF_END = 4;
  private static final float[] P = {
    1.1283789764f, 0.1962493799f, 0.0534675346f, 0.0040036650f, 2.8804217e-4f, 1.9748304e-6f
  };
  private static final float[] Q = {
    1f, 0.5072526432f, 0.1164765963f, 0.0154444585f, 0.0012163652f, 3.7480907e-5f
  };

  private GeluErf() {}

  private static Support supports(NodeInfo node) {
    return Support.when(
            "GELU_ERF".equals(node.function()), "it is " + node.function() + ", not GELU_ERF")
        .and(node.dst().is(Type.F32) && node.src(0).is(Type.F32), "only F32")
        .and(
            node.dst().isRowContiguous() && node.src(0).isRowContiguous(),
            "the elements of a row have gaps between them");
  }

  private static void run(Task task, long first, long end) {
    MemorySegment x = task.src(0).data();
    MemorySegment y = task.dst().data();
    int n = Math.toIntExact(task.dst().ne(0));
    for (long row = first; row < end; row++) {
      gelu(x, task.src(0).rowOffset(row), y, task.dst().rowOffset(row), n);
    }
  }

  /** Computes {@code n} elements; {@code y} may be {@code x}. */
  static void gelu(MemorySegment x, long xOffset, MemorySegment y, long yOffset, int n) {
    int vectors = SPECIES.loopBound(n);
    for (int i = 0; i < vectors; i += SPECIES.length()) {
      gelu(FloatVector.fromMemorySegment(SPECIES, x, xOffset + 4L * i, ORDER))
          .intoMemorySegment(y, yOffset + 4L * i, ORDER);
    }
    if (vectors < n) {
      VectorMask<Float> rest = SPECIES.indexInRange(vectors, n);
      gelu(FloatVector.fromMemorySegment(SPECIES, x, xOffset + 4L * vectors, ORDER, rest))
          .intoMemorySegment(y, yOffset + 4L * vectors, ORDER, rest);
    }
  }

  private static FloatVector gelu(FloatVector x) {
    FloatVector half = x.mul(0.5f);
    return half.fma(erf(x.mul(SQRT_HALF)), half);
  }

  private static FloatVector erf(FloatVector x) {
    FloatVector square = x.mul(x);
    return x.mul(polynomial(P, square))
        .div(polynomial(Q, square))
        .blend(1, x.compare(VectorOperators.GE, ERF_END))
        .blend(-1, x.compare(VectorOperators.LE, -ERF_END));
  }

  private static FloatVector polynomial(float[] coefficients, FloatVector t) {
    FloatVector value = FloatVector.broadcast(SPECIES, coefficients[5]);
    value = value.fma(t, FloatVector.broadcast(SPECIES, coefficients[4]));
    value = value.fma(t, FloatVector.broadcast(SPECIES, coefficients[3]));
    value = value.fma(t, FloatVector.broadcast(SPECIES, coefficients[2]));
    value = value.fma(t, FloatVector.broadcast(SPECIES, coefficients[1]));
    return value.fma(t, FloatVector.broadcast(SPECIES, coefficients[0]));
  }
}
