package org.ggmlext.ext;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;

/**
 * What a test of extensions works with: the attached layer, a CPU backend with its scheduler,
 * contexts for inputs and nodes. Closing it closes backend and registrations, in this order.
 */
final class Workbench implements AutoCloseable {
  private static final AtomicInteger NAMES = new AtomicInteger();

  final Extensions ext = Extensions.attach(Ggml.load());
  final Device cpu = Ggml.load().device(DeviceType.CPU);
  final Backend backend = cpu.newBackend();
  final Scheduler scheduler = Scheduler.of(backend);
  final Context inputs = Context.create(1 << 20);
  final Context nodes = Context.create(1 << 22);
  private final List<Runnable> atEnd = new ArrayList<>();

  /** A name that no other test uses, since names are unique in the process. */
  static String unique(String base) {
    return base + "_" + NAMES.incrementAndGet();
  }

  Registration register(Operator<?> operator) {
    return own(ext.register(operator));
  }

  Registration register(Kernel kernel) {
    return own(ext.register(cpu, kernel));
  }

  Registration register(FusionRule rule) {
    return own(ext.register(cpu, rule));
  }

  Registration register(GraphOptimizer optimizer) {
    return own(ext.register(cpu, optimizer));
  }

  private Registration own(Registration registration) {
    atEnd.add(registration::close);
    return registration;
  }

  /** Runs this after the backend is closed, the last one first. */
  void atEnd(Runnable action) {
    atEnd.add(action);
  }

  /** An F32 tensor with memory of its own. */
  Tensor input(float[] values, long... ne) {
    Tensor tensor = inputs.newTensor(Type.F32, ne);
    inputs.allocate(cpu);
    return tensor.setFloats(values);
  }

  /** Values {@code f(0), f(1), ...} between -1 and 1 that look random. */
  static float[] values(int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) Math.sin(1.7 * i + 0.3);
    }
    return values;
  }

  Graph graph(Tensor... outputs) {
    for (Tensor output : outputs) {
      output.asOutput();
    }
    return nodes.newGraph(64).expand(outputs);
  }

  /** Computes through the scheduler. */
  float[] compute(Tensor output) {
    scheduler.compute(graph(output));
    return output.getFloats();
  }

  @Override
  public void close() {
    scheduler.close();
    backend.close();
    nodes.close();
    inputs.close();
    atEnd.reversed().forEach(Runnable::run);
  }
}
