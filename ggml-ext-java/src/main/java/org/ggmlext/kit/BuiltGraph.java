package org.ggmlext.kit;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.Native;
import org.jspecify.annotations.Nullable;

/** The user's graph over inputs in certain layouts, with memory for the inputs. */
final class BuiltGraph implements AutoCloseable {
  private static final int NODES = 64;

  /**
   * Views that nobody reads: a graph of so many nodes has scratch memory in the scheduler's buffer,
   * where it can be poisoned; a smaller one has it in the layer's.
   */
  private static final int IDLE = 4;

  private final Context leaves;
  private final Context nodes = Context.forGraph(2 * NODES);
  private final List<PlacedInput> inputs = new ArrayList<>();
  private final List<Tensor> intermediates = new ArrayList<>();
  private final Graph graph;
  private final Tensor output;
  private @Nullable Tensor extra;

  /**
   * Builds the graph.
   *
   * @throws IllegalArgumentException if the builder refuses
   */
  BuiltGraph(Device device, List<Input> specs, Situation situation, GraphBuilder builder) {
    leaves = Context.forTensors(specs.size() + 1);
    try {
      for (int i = 0; i < specs.size(); i++) {
        inputs.add(new PlacedInput(leaves, specs.get(i), situation.layouts().get(i)));
      }
      Tensor idle = leaves.newTensor(Type.F32, 1);
      leaves.allocate(device);
      List<Tensor> presented = inputs.stream().map(input -> input.present(nodes)).toList();
      output = builder.build(nodes, presented);
      if (output.op().equals("NONE")) {
        throw new IllegalArgumentException("the builder's output is computed by no node");
      }
      output.asOutput();
      graph = nodes.newGraph(2 * NODES).expand(output);
      for (Tensor node : graph.nodes()) {
        if (!node.equals(output) && !node.isView() && !presented.contains(node)) {
          intermediates.add(node);
        }
      }
      change(situation);
      for (int i = 0; i < IDLE; i++) {
        graph.expand(nodes.view1d(idle, 1, 0));
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  private void change(Situation situation) {
    if (situation.extra() == Situation.Extra.NONE) {
      return;
    }
    Tensor intermediate = intermediates.get(situation.intermediate());
    if (situation.extra() == Situation.Extra.OUTPUT_FLAG) {
      extra = intermediate.asOutput();
    } else {
      extra = nodes.cont(intermediate).asOutput();
      graph.expand(extra);
    }
  }

  Graph graph() {
    return graph;
  }

  Tensor output() {
    return output;
  }

  /** A second output, where the situation makes one. */
  @Nullable Tensor extra() {
    return extra;
  }

  /** Results, no views, between inputs and output. */
  List<Tensor> intermediates() {
    return intermediates;
  }

  /** Gives all nodes memory of their own. */
  void allocate(Device device) {
    nodes.allocate(device);
  }

  /** Whether the allocator gave the output memory of an input. */
  boolean outputLiesOver(int input) {
    Tensor tensor = inputs.get(input).presented();
    long begin = Native.data(tensor.handle().address());
    long at = Native.data(output.handle().address());
    return at < begin + tensor.byteSize() && begin < at + output.byteSize();
  }

  void fill(List<Values> values) {
    for (int i = 0; i < inputs.size(); i++) {
      inputs.get(i).fill(values.get(i));
    }
  }

  void poisonInputs() {
    inputs.forEach(PlacedInput::poison);
  }

  /**
   * So that what a kernel does not write is not right by chance, nor scratch memory that it reads
   * before it writes it: all of the nodes' buffers.
   */
  void poisonNodes() {
    Set<Long> buffers = new HashSet<>();
    for (Tensor node : graph.nodes()) {
      if (!node.isView() && node.isAllocated()) {
        buffers.add(Native.buffer(node.handle().address()));
      }
    }
    for (long buffer : buffers) {
      ggml_backend_h.ggml_backend_buffer_clear(MemorySegment.ofAddress(buffer), PlacedInput.POISON);
    }
  }

  static void poisonNodes(Graph graph) {
    for (Tensor node : graph.nodes()) {
      if (!node.isView() && node.isAllocated()) {
        PlacedInput.poison(node);
      }
    }
  }

  @Override
  public void close() {
    nodes.close();
    leaves.close();
  }
}
