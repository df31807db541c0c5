package org.ggmlext;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Function;

/**
 * Builds, schedules and computes one small graph on the CPU; inputs get their values in between.
 */
final class GraphRunner implements AutoCloseable {
  private final Backend backend = Ggml.load().device("CPU").newBackend();
  private final Scheduler scheduler = Scheduler.of(backend);
  private final Context context = Context.forTensors(256);
  private final List<Runnable> fills = new ArrayList<>();
  private final Random random = new Random(42);

  Context context() {
    return context;
  }

  /** An F32 input with these values. */
  Tensor input(Shape shape, float... values) {
    Tensor tensor = context.newTensor(Type.F32, shape).asInput();
    return filled(tensor, () -> tensor.setFloats(values));
  }

  /** An input of another type, with these values rounded to it. */
  Tensor input(Type type, Shape shape, float... values) {
    Tensor tensor = context.newTensor(type, shape).asInput();
    return filled(tensor, () -> tensor.setFloats(values));
  }

  /** An I32 input with these values. */
  Tensor ints(Shape shape, int... values) {
    Tensor tensor = context.newTensor(Type.I32, shape).asInput();
    return filled(tensor, () -> tensor.setInts(values));
  }

  /** Not every graph has every input. */
  private Tensor filled(Tensor tensor, Runnable fill) {
    fills.add(
        () -> {
          if (tensor.isAllocated()) {
            fill.run();
          }
        });
    return tensor;
  }

  /** Values between -2 and 2, the same in every run. */
  float[] values(Shape shape) {
    float[] values = new float[(int) shape.elements()];
    for (int i = 0; i < values.length; i++) {
      values[i] = random.nextFloat(-2, 2);
    }
    return values;
  }

  /** Computes a tensor and gives it, ready to be read. */
  Tensor compute(Tensor output) {
    output.asOutput();
    try (Context graphs = Context.forGraph(64)) {
      Graph graph = graphs.newGraph(64).expand(output);
      scheduler.allocate(graph);
      fills.forEach(Runnable::run);
      scheduler.compute(graph);
    }
    return output;
  }

  /** Computes and reads what an operation makes. */
  float[] floats(Function<Context, Tensor> operation) {
    return compute(operation.apply(context)).getFloats();
  }

  @Override
  public void close() {
    scheduler.close();
    backend.close();
    context.close();
  }
}
