package org.ggmlext.benchmarks;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.BiFunction;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;

/**
 * A graph of one input and one output on the CPU, allocated by the scheduler, to be computed again
 * and again.
 */
final class GraphBench implements AutoCloseable {
  private final Backend backend;
  private final Scheduler scheduler;
  private final Context context;
  private final Graph graph;
  private final Tensor input;
  private final Tensor output;
  private final MemorySegment schedulerHandle;
  private final MemorySegment graphHandle;

  private GraphBench(Backend backend, Context context, Tensor input, Tensor output, int nodes) {
    this.backend = backend;
    this.scheduler = Scheduler.of(backend);
    this.context = context;
    this.input = input.asInput();
    this.output = output.asOutput();
    this.graph = context.newGraph(nodes).expand(output);
    scheduler.allocate(graph);
    schedulerHandle = scheduler.handle();
    graphHandle = graph.handle();
  }

  /** A chain of nodes, each of which {@code node} makes of the one before. */
  static GraphBench chain(
      int threads, int nodes, long elements, long rows, BiFunction<Context, Tensor, Tensor> node) {
    Backend backend = Ggml.load().device(DeviceType.CPU).newBackend().threads(threads);
    Context context = Context.forGraph(nodes + 8);
    Tensor input = context.newTensor(Type.F32, elements, rows);
    Tensor last = input;
    for (int i = 0; i < nodes; i++) {
      last = node.apply(context, last);
    }
    return new GraphBench(backend, context, input, last, nodes + 8);
  }

  /** A chain of one operator. */
  static GraphBench chain(Work work, Author author, Size size, int threads) {
    return chain(work, author, threads, size.nodes(), size.elements(), size.rows());
  }

  /** A chain of one operator. */
  static GraphBench chain(
      Work work, Author author, int threads, int nodes, long elements, long rows) {
    // First of all: it attaches the layer, which extends only backends that are made later.
    Operator<NoAttributes> operator = Kernels.operator(work, author);
    return chain(
        threads, nodes, elements, rows, (context, tensor) -> operator.create(context, tensor));
  }

  Backend backend() {
    return backend;
  }

  /** Writes the input. */
  void write(float[] values) {
    input.setFloats(values);
  }

  /** Writes the input and whatever else is no node's output. */
  void fill(float value) {
    for (Tensor leaf : graph.leaves()) {
      float[] values = new float[Math.toIntExact(leaf.elements())];
      Arrays.fill(values, value);
      leaf.setFloats(values);
    }
  }

  float[] read() {
    return output.getFloats();
  }

  /**
   * Computes the graph by ggml's own function: the checks of {@link Scheduler#compute} are the same
   * on all sides, and would dilute the ratio.
   */
  int compute() {
    int status = ggml_backend_h.ggml_backend_sched_graph_compute(schedulerHandle, graphHandle);
    if (status != 0) {
      throw new GgmlException("the compute fails with status " + status);
    }
    return status;
  }

  /** Plans and allocates the graph anew, and computes it. */
  void allocateAndCompute() {
    scheduler.allocate(graph);
    scheduler.compute(graph);
  }

  @Override
  public void close() {
    scheduler.close();
    backend.close();
    context.close();
  }
}
