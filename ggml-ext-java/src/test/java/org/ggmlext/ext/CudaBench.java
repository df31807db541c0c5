package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.offset;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.DoubleUnaryOperator;
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
 * What a test on a CUDA device works with, be it a GPU or the native tests' device without one: the
 * attached layer, a backend of the device and one of the CPU in a scheduler, contexts. Closing it
 * closes backends and registrations, in this order.
 */
final class CudaBench implements AutoCloseable {
  final Extensions ext = Extensions.attach(Ggml.load());
  final Device device = device();
  final Device cpu = Ggml.load().device(DeviceType.CPU);
  final Backend backend = device.newBackend();
  private final Backend rest = cpu.newBackend().threads(1);
  private final Scheduler scheduler = Scheduler.of(backend, rest);
  private final Context inputs = Context.create(1 << 20);
  final Context nodes = Context.create(1 << 22);
  private final List<Runnable> atEnd = new ArrayList<>();

  /** The first CUDA device; where there is none, the test is skipped. */
  static Device device() {
    Optional<Device> gpu =
        Ggml.load().devices().stream()
            .filter(d -> d.type() == DeviceType.GPU && d.name().startsWith("CUDA"))
            .findFirst();
    assumeTrue(
        gpu.isPresent(),
        "ggml has no CUDA device here: no GPU, no driver, or no CUDA backend; or, without a GPU,"
            + " the native tests are not built");
    return gpu.get();
  }

  Registration register(Operator<?> operator) {
    return own(ext.register(operator));
  }

  Registration register(Kernel kernel) {
    return own(ext.register(device, kernel));
  }

  Registration register(FusionRule rule) {
    return own(ext.register(device, rule));
  }

  private Registration own(Registration registration) {
    atEnd.add(registration::close);
    return registration;
  }

  /** Closes this after the backends are closed, the last one first. */
  <T extends AutoCloseable> T own(T object) {
    atEnd.add(
        () -> {
          try {
            object.close();
          } catch (Exception e) {
            throw new AssertionError(e);
          }
        });
    return object;
  }

  /** An F32 tensor in the device's memory. */
  Tensor input(long... ne) {
    Tensor tensor = inputs.newTensor(Type.F32, ne);
    inputs.allocate(device);
    return tensor;
  }

  Graph graph(Tensor output) {
    return nodes.newGraph(256).expand(output.asOutput());
  }

  /** Values between -1 and 1 that look random, others for each seed. */
  static float[] values(long count, int seed) {
    float[] values = new float[Math.toIntExact(count)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) Math.sin(1.7 * i + 0.3 + 11.0 * seed);
    }
    return values;
  }

  /** Computes once for each round, with other inputs each time, and compares each element. */
  void check(Graph graph, Tensor x, Tensor y, int rounds, DoubleUnaryOperator expected) {
    for (int round = 0; round < rounds; round++) {
      float[] in = values(x.elements(), round);
      x.setFloats(in);
      scheduler.compute(graph);
      float[] out = y.getFloats();
      assertThat(out).hasSameSizeAs(in);
      for (int i = 0; i < in.length; i++) {
        double value = expected.applyAsDouble(in[i]);
        assertThat((double) out[i])
            .as("round %d, element %d of %s", round, i, y)
            .isCloseTo(value, offset(1e-6 * (1 + Math.abs(value))));
      }
    }
  }

  void compute(Graph graph) {
    scheduler.compute(graph);
  }

  BackendStats stats() {
    return ext.stats(backend);
  }

  @Override
  public void close() {
    scheduler.close();
    rest.close();
    backend.close();
    nodes.close();
    inputs.close();
    atEnd.reversed().forEach(Runnable::run);
  }
}
