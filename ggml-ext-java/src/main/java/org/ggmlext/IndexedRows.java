package org.ggmlext;

import java.util.Set;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;

/**
 * Checks the row indices that a graph reads from its inputs: ggml's CPU kernels end the process
 * over one that is out of range. Indices that the graph itself computes cannot be checked before.
 */
final class IndexedRows {
  /** The values of operations differ from one ggml to the next: they are taken from nodes. */
  private static final class Ops {
    static final int GET_ROWS;
    static final int SET_ROWS;
    static final int MUL_MAT_ID;
    static final Set<Integer> VIEWS;

    static {
      try (Context context = Context.forTensors(16)) {
        Tensor rows = context.newTensor(Type.F32, 1, 1);
        Tensor ids = context.newTensor(Type.I32, 1);
        GET_ROWS = op(context.getRows(rows, ids));
        SET_ROWS = op(context.setRows(rows, rows, ids));
        MUL_MAT_ID = op(context.mulMatId(rows, rows, ids));
        VIEWS =
            Set.of(
                op(context.reshape(ids, 1, 1)),
                op(context.view1d(ids, 1, 0)),
                op(context.permute(ids, 0, 2, 1, 3)),
                op(context.transpose(ids)));
      }
    }

    private static int op(Tensor tensor) {
      return Native.op(tensor.handle().address());
    }
  }

  private IndexedRows() {}

  /** Whether a node reads indices. */
  static boolean isIndexed(long tensor) {
    int op = Native.op(tensor);
    return op == Ops.GET_ROWS || op == Ops.SET_ROWS || op == Ops.MUL_MAT_ID;
  }

  /**
   * Checks the indices of nodes whose tensors have memory.
   *
   * @throws IllegalArgumentException if one is out of range
   */
  static void check(Graph graph, LongList nodes) {
    for (int i = 0; i < nodes.size(); i++) {
      long node = nodes.get(i);
      int op = Native.op(node);
      long ids = Native.src(node, op == Ops.MUL_MAT_ID ? 2 : 1);
      if (isInput(ids)) {
        Tensor from = tensor(graph, op == Ops.SET_ROWS ? node : Native.src(node, 0));
        check(
            graph, tensor(graph, node), tensor(graph, ids), from.ne(op == Ops.MUL_MAT_ID ? 2 : 1));
      }
    }
  }

  private static boolean isInput(long tensor) {
    long source = tensor;
    while (Ops.VIEWS.contains(Native.op(source))) {
      source = Native.src(source, 0);
    }
    return Native.op(source) == 0;
  }

  private static void check(Graph graph, Tensor node, Tensor ids, long limit) {
    boolean wide = ids.type() == Type.I64;
    long[] longs = wide ? ids.getLongs() : new long[0];
    int[] ints = wide ? new int[0] : ids.getInts();
    for (int i = 0; i < ids.elements(); i++) {
      long index = wide ? longs[i] : ints[i];
      if (index < 0 || index >= limit) {
        throw new IllegalArgumentException(
            "%s of %s, node \"%s\": element %d of its indices \"%s\" is %d, not 0 to %d"
                .formatted(node.op(), graph, node.name(), i, ids.name(), index, limit - 1));
      }
    }
  }

  private static Tensor tensor(Graph graph, long address) {
    return new Tensor(graph.context().ownerOf(address), Native.tensor(address));
  }
}
