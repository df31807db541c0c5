package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One planned step while it runs: a single node, or the group of nodes that a fusion rule replaces.
 * Valid during the call that got it only.
 */
public abstract sealed class Step permits Task, Execution {
  final PlannedStep planned;

  Step(PlannedStep planned) {
    this.planned = planned;
  }

  /** The nodes that the step computes, in graph order; one, but for fusion rules. */
  public List<NodeView> nodes() {
    return planned.nodes();
  }

  /** A node that the step computes, in graph order. */
  public NodeView node(int index) {
    return planned.node(index);
  }

  /** The last node, whose output is the step's output. */
  public NodeView node() {
    return planned.lastNode();
  }

  /** The step's output: that of its last node. */
  public TensorView dst() {
    return planned.lastNode().dst();
  }

  /**
   * A source of the step's last node.
   *
   * @throws java.util.NoSuchElementException if it has no such source
   */
  public TensorView src(int index) {
    return planned.lastNode().src(index);
  }

  /**
   * The tensor that a pattern captured.
   *
   * @param capture found once, by {@link PrepareContext#capture}
   */
  public TensorView tensor(Capture capture) {
    return planned.tensor(capture);
  }

  /** The last node's attributes, decoded once for each planned step. */
  public <A extends Record> A attributes(Operator<A> operator) {
    return planned.attributes(operator);
  }

  /**
   * Scratch memory, as many bytes as {@link Prepared#workspaceBytes} says, shared by all tasks of
   * the step; empty where none was asked for.
   *
   * @throws IllegalStateException if the CPU cannot read the memory of the kernel's device
   */
  public MemorySegment workspace() {
    return planned.workspace();
  }

  /** The address of the scratch memory, in the memory of the kernel's device. */
  public long workspaceAddress() {
    return planned.workspaceAddress();
  }

  /**
   * The state that {@link KernelBody#prepare} made.
   *
   * @param type its class
   * @throws ClassCastException if it is of another class
   */
  public <S> S state(Class<S> type) {
    @Nullable Object state = planned.state();
    if (state == null) {
      throw new IllegalStateException(planned + " has no state; prepare gives one");
    }
    return type.cast(state);
  }
}
