package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.ggmlext.bindings.ggml_ext_exec_params;
import org.ggmlext.internal.callback.CallbackThreads;
import org.ggmlext.internal.callback.Raw;
import org.ggmlext.internal.callback.StepTarget;
import org.jspecify.annotations.Nullable;

/**
 * The Java half of one planned step, from prepare to destroy. Views, tasks and attributes are made
 * once; running reads only what may have changed: addresses.
 */
final class PlannedStep implements StepTarget {
  private static final long BACKEND = ggml_ext_exec_params.backend$offset();
  private static final NodeView[] NONE = {};
  private static final long WORKSPACE = ggml_ext_exec_params.workspace$offset();

  private final Definition definition;
  private final @Nullable TaskBody taskBody;
  private final @Nullable WholeBody wholeBody;
  private final PrepareContext context;
  private final Prepared prepared;
  private final boolean onHost;

  // The last node by itself: most steps have no other, and every array on the way costs time.
  private final NodeView last;
  private final NodeView[] before;
  private final List<NodeView> nodes;
  private MemorySegment workspace = MemorySegment.NULL;
  private volatile Task[] tasks = {};
  private @Nullable Operator<?> attributesOf;
  private @Nullable Record attributes;

  /**
   * A step.
   *
   * @param onHost whether the CPU can read the memory of the device that it runs on
   */
  PlannedStep(
      Definition definition,
      long nodeArray,
      PrepareContext context,
      Prepared prepared,
      boolean onHost) {
    this.definition = definition;
    this.taskBody = definition.body() instanceof TaskBody body ? body : null;
    this.wholeBody = definition.body() instanceof WholeBody body ? body : null;
    this.context = context;
    this.prepared = prepared;
    this.onHost = onHost;
    int count = context.nodes().size();
    this.before = count == 1 ? NONE : new NodeView[count - 1];
    for (int i = 0; i < before.length; i++) {
      before[i] = view(nodeArray, i);
    }
    this.last = view(nodeArray, count - 1);
    List<NodeView> all = new ArrayList<>(List.of(before));
    all.add(last);
    this.nodes = List.copyOf(all);
  }

  private NodeView view(long array, int index) {
    return new NodeView(Raw.getLong(array + 8L * index), context.nodes().get(index), onHost);
  }

  @Override
  public void run(long params, int phase, int ith, int nth) throws Exception {
    refresh(params);
    Task task = task(ith);
    if (task.begin(phase, nth)) {
      CallbackThreads.adopt();
    }
    Objects.requireNonNull(taskBody).run(task);
  }

  @Override
  public void execute(long params) throws Exception {
    refresh(params);
    CallbackThreads.adopt();
    Execution execution = new Execution(this, Raw.getLong(params + BACKEND));
    try {
      Objects.requireNonNull(wholeBody).execute(execution);
    } finally {
      execution.end();
    }
  }

  @Override
  public void destroy() throws Exception {
    definition.destroy(prepared.state());
  }

  private void refresh(long params) {
    last.refresh();
    for (NodeView node : before) {
      node.refresh();
    }
    if (prepared.workspaceBytes() != 0) {
      long address = Raw.getLong(params + WORKSPACE);
      if (address != workspace.address()) {
        workspace = Raw.segment(address, onHost ? prepared.workspaceBytes() : 0);
      }
    }
  }

  private Task task(int ith) {
    Task[] current = tasks;
    return ith < current.length ? current[ith] : addTasks(ith);
  }

  private synchronized Task addTasks(int ith) {
    Task[] current = tasks;
    if (ith >= current.length) {
      Task[] grown = Arrays.copyOf(current, ith + 1);
      for (int i = current.length; i < grown.length; i++) {
        grown[i] = new Task(this, i);
      }
      tasks = grown;
      current = grown;
    }
    return current[ith];
  }

  List<NodeView> nodes() {
    return nodes;
  }

  NodeView node(int index) {
    return nodes.get(index);
  }

  NodeView lastNode() {
    return last;
  }

  TensorView tensor(Capture capture) {
    NodeView node = node(capture.node());
    return capture.isOutput() ? node.dst() : node.src(capture.src());
  }

  <A extends Record> A attributes(Operator<A> operator) {
    Record known = attributes;
    if (known == null || attributesOf != operator) {
      known = lastNode().info().attributes(operator);
      attributes = known;
      attributesOf = operator;
    }
    return operator.attributesType().cast(known);
  }

  MemorySegment workspace() {
    if (!onHost) {
      throw new IllegalStateException(
          "the scratch memory of "
              + this
              + " is memory of a device, which the CPU cannot read: use workspaceAddress()");
    }
    return workspace;
  }

  long workspaceAddress() {
    return workspace.address();
  }

  long workspaceBytes() {
    return prepared.workspaceBytes();
  }

  PrepareContext context() {
    return context;
  }

  @Nullable Object state() {
    return prepared.state();
  }

  @Override
  public String toString() {
    return definition.name() + " for " + context.node();
  }
}
