package org.ggmlext.vector;

import java.lang.foreign.MemorySegment;
import org.ggmlext.Type;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.RowBody;
import org.ggmlext.ext.Support;
import org.ggmlext.ext.TensorInfo;
import org.ggmlext.ext.TensorView;

/** Row kernels for F32 nodes made of functions on one row. */
public final class RowKernels {
  private RowKernels() {}

  /** A function of one row, such as {@code Activations::silu}. */
  @FunctionalInterface
  public interface Unary {
    /** Computes {@code n} elements. */
    void run(MemorySegment x, long xOffset, MemorySegment out, long outOffset, int n);
  }

  /** A function of two rows, such as {@code Rows::add}. */
  @FunctionalInterface
  public interface Binary {
    /** Computes {@code n} elements. */
    void run(
        MemorySegment a,
        long aOffset,
        MemorySegment b,
        long bOffset,
        MemorySegment out,
        long outOffset,
        int n);
  }

  /** Applies a function to each row of source 0. Check the node by {@link #supportsUnary}. */
  public static RowBody unary(Unary function) {
    return (task, first, end) -> {
      TensorView x = task.src(0);
      TensorView out = task.dst();
      int n = Math.toIntExact(out.ne(0));
      for (long row = first; row < end; row++) {
        function.run(x.data(), x.rowOffset(row), out.data(), out.rowOffset(row), n);
      }
    };
  }

  /**
   * Applies a function to each row of source 0 and the row of source 1 that belongs to it, repeated
   * in dimensions 1 to 3 where it has fewer. Check the node by {@link #supportsBinary}.
   */
  public static RowBody binary(Binary function) {
    return (task, first, end) -> {
      TensorView a = task.src(0);
      TensorView b = task.src(1);
      TensorView out = task.dst();
      int n = Math.toIntExact(out.ne(0));
      for (long row = first; row < end; row++) {
        function.run(
            a.data(),
            a.rowOffset(row),
            b.data(),
            repeated(b.info(), out.info(), row),
            out.data(),
            out.rowOffset(row),
            n);
      }
    };
  }

  private static long repeated(TensorInfo b, TensorInfo out, long row) {
    if (b.hasShapeOf(out)) {
      return b.rowOffset(row);
    }
    long i1 = row % out.ne(1);
    long plane = row / out.ne(1);
    return i1 % b.ne(1) * b.nb(1)
        + plane % out.ne(2) % b.ne(2) * b.nb(2)
        + plane / out.ne(2) % b.ne(3) * b.nb(3);
  }

  /** Whether {@link #unary} can compute the node. */
  public static Support supportsUnary(NodeInfo node) {
    return first(rows(node.dst()), rows(node.src(0)))
        .and(node.src(0).hasShapeOf(node.dst()), "source and output differ in shape");
  }

  /** Whether {@link #binary} can compute the node. */
  public static Support supportsBinary(NodeInfo node) {
    if (!node.hasSrc(1)) {
      return Support.no("there is no source 1");
    }
    return first(supportsUnary(node), rows(node.src(1)))
        .and(node.src(1).ne(0) == node.dst().ne(0), "rows of source 1 are repeated");
  }

  private static Support first(Support one, Support other) {
    return one instanceof Support.No ? one : other;
  }

  private static Support rows(TensorInfo tensor) {
    return Support.when(tensor.is(Type.F32), tensor + " is not F32")
        .and(tensor.isRowContiguous(), tensor + " has gaps in its rows")
        .and(tensor.ne(0) <= Integer.MAX_VALUE / 4, tensor + " has too long rows");
  }
}
