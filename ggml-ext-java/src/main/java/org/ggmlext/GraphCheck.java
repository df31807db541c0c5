package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_tensor;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.RefusedNodes;

/**
 * What must hold before ggml is asked to compute a graph: it ends the process where it does not.
 */
final class GraphCheck {
  private GraphCheck() {}

  /** That the graph has something to compute. */
  static void notEmpty(Graph graph) {
    if (graph.nodeCount() == 0) {
      throw new IllegalStateException("the graph has no nodes: call expand with its outputs first");
    }
  }

  /**
   * That every tensor has memory, and indices are in range. A view that does not know its storage's
   * address yet learns it.
   *
   * @throws IllegalStateException if one has none
   * @throws IllegalArgumentException if an index is out of range
   */
  static void memory(Graph graph) {
    notEmpty(graph);
    LongList members = graph.snapshot();
    for (int i = 0; i < members.size(); i++) {
      long tensor = members.get(i);
      if (!TensorData.isAllocated(tensor)) {
        throw new IllegalStateException(
            "the tensor \"%s\" of the graph has no memory: allocate the graph or the context"
                .formatted(Native.name(tensor)));
      }
      long root = Native.viewSrc(tensor);
      if (root != 0) {
        long data = Native.data(root) + Native.viewOffset(tensor);
        if (Native.buffer(tensor) == 0 || Native.data(tensor) != data) {
          Native.place(tensor, Native.buffer(root), data);
        }
      }
    }
    IndexedRows.check(graph, graph.indexed());
  }

  /**
   * That some backend can compute every node where its memory is.
   *
   * @throws GgmlException if none can
   */
  static void support(Graph graph, List<Backend> backends) {
    LongList members = graph.snapshot();
    for (int i = 0; i < members.size(); i++) {
      long tensor = members.get(i);
      if (Native.op(tensor) != ggml_h.GGML_OP_NONE()) {
        supported(tensor, backends);
      }
    }
  }

  private static void supported(long tensor, List<Backend> backends) {
    MemorySegment node = Native.tensor(tensor);
    long view = Native.viewSrc(tensor);
    long buffer = Native.buffer(view != 0 ? view : tensor);
    boolean anyOp = false;
    for (Backend backend : backends) {
      MemorySegment device = backend.device().handle();
      if (!ggml_backend_h.ggml_backend_dev_supports_op(device, node)) {
        continue;
      }
      anyOp = true;
      if (buffer == 0
          || ggml_backend_h.ggml_backend_dev_supports_buft(
              device,
              ggml_backend_h.ggml_backend_buffer_get_type(MemorySegment.ofAddress(buffer)))) {
        return;
      }
    }
    List<Device> devices = backends.stream().map(Backend::device).toList();
    RefusedNodes.Refusal refusal = RefusedNodes.explain(node, devices);
    String what =
        "%s of type %s (node \"%s\")"
            .formatted(
                refusal == null ? Native.string(ggml_h.ggml_op_desc(node)) : refusal.operator(),
                Native.string(ggml_h.ggml_type_name(ggml_tensor.type(node))),
                Native.name(tensor));
    throw new GgmlException(
        anyOp
            ? "no device of %s can compute %s into the memory that its result already has"
                .formatted(devices, what)
            : "no device of %s can compute %s%s"
                .formatted(devices, what, refusal == null ? "" : ": " + refusal.reason()));
  }
}
