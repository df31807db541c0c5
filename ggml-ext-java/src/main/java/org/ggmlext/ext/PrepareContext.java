package org.ggmlext.ext;

import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;

/** What a step will compute; there are no addresses yet. */
public final class PrepareContext {
  private final List<NodeInfo> nodes;
  private final Map<String, Capture> captures;

  PrepareContext(List<NodeInfo> nodes, Map<String, Capture> captures) {
    this.nodes = nodes;
    this.captures = captures;
  }

  /** The nodes that the step computes, in graph order; one, but for fusion rules. */
  public List<NodeInfo> nodes() {
    return nodes;
  }

  /** The last node, whose output is the step's output. */
  public NodeInfo node() {
    return nodes.getLast();
  }

  /** The step's output: that of its last node. */
  public TensorInfo dst() {
    return node().dst();
  }

  /** A source of the step's last node. */
  public TensorInfo src(int index) {
    return node().src(index);
  }

  /** The last node's attributes. */
  public <A extends Record> A attributes(Operator<A> operator) {
    return node().attributes(operator);
  }

  /**
   * Where the tensor is that the rule's pattern captured under this name; keep it in the state, and
   * read it by {@link Step#tensor}; or launch with it, {@link CudaArgument#tensor}.
   *
   * @throws NoSuchElementException if the pattern captures nothing of this name
   */
  public Capture capture(String name) {
    Capture capture = captures.get(name);
    if (capture == null) {
      throw new NoSuchElementException(
          "no capture \"" + name + "\"; the pattern has " + captures.keySet());
    }
    return capture;
  }
}
