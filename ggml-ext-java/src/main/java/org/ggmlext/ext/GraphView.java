package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.AbstractList;
import java.util.List;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/**
 * The part of a graph that one backend computes, during planning. Valid during the call that got it
 * only; used by the thread that it was given to.
 */
public final class GraphView {
  private final MemorySegment graph;
  private @Nullable NodeInfo[] nodes;
  private boolean over;

  GraphView(long graph) {
    this.graph = MemorySegment.ofAddress(graph);
    nodes = new @Nullable NodeInfo[ggml_ext_h.ggml_ext_graph_n_nodes(this.graph)];
  }

  /** After the callback: whoever kept the view gets exceptions. */
  void end() {
    over = true;
  }

  private void check() {
    if (over) {
      throw new IllegalStateException("the planning that this graph view belonged to is over");
    }
  }

  /** Number of nodes. */
  public int size() {
    check();
    return nodes.length;
  }

  /**
   * A node's metadata.
   *
   * @param index 0 to {@code size() - 1}
   */
  public NodeInfo node(int index) {
    checkIndex(index);
    NodeInfo known = nodes[index];
    if (known == null) {
      known = new NodeInfo(ggml_ext_h.ggml_ext_graph_node(graph, index).address());
      nodes[index] = known;
    }
    return known;
  }

  private void checkIndex(int index) {
    check();
    if (index < 0 || index >= nodes.length) {
      throw new IndexOutOfBoundsException("node " + index + " of " + nodes.length);
    }
  }

  /** How often nodes of the whole graph read a node's output. */
  public int useCount(int index) {
    checkIndex(index);
    return ggml_ext_h.ggml_ext_graph_use_count(graph, index);
  }

  /** The number of the node that computes a tensor, -1 where it is none of this graph. */
  public int find(TensorInfo tensor) {
    check();
    return ggml_ext_h.ggml_ext_graph_find(graph, tensor.handle());
  }

  /**
   * Moves nodes behind the ones that follow. For {@link GraphPass} only. Refused, and nothing
   * moves, where a moved node's result, storage or input is touched by what is crossed.
   *
   * @param first first node to move
   * @param count how many
   * @param before they end up directly before this node; {@code size()}: at the end
   * @return yes, or the reason of the refusal
   */
  public Support delay(int first, int count, int before) {
    check();
    int status = ggml_ext_h.ggml_ext_graph_delay(graph, first, count, before);
    if (status != ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
      return Support.no(ExtStatus.message(status));
    }
    nodes = new @Nullable NodeInfo[nodes.length];
    return Support.yes();
  }

  /** The nodes from one on, read when asked for. */
  List<NodeInfo> from(int first) {
    return new AbstractList<>() {
      @Override
      public NodeInfo get(int index) {
        return node(first + index);
      }

      @Override
      public int size() {
        return GraphView.this.size() - first;
      }
    };
  }
}
