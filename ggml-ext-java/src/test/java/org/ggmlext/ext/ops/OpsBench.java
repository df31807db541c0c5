package org.ggmlext.ext.ops;

import java.util.Random;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.LibraryRegistration;

/** The CPU with the bundled kernels, contexts for inputs and nodes; closed after a test. */
final class OpsBench implements AutoCloseable {
  final Device cpu = Ggml.load().device(DeviceType.CPU);
  private final LibraryRegistration library =
      Extensions.attach(Ggml.load()).register(cpu, KernelLibrary.bundled("cpu"));
  private final Backend backend = cpu.newBackend();
  private final Scheduler scheduler = Scheduler.of(backend);
  final Context inputs = Context.create(1 << 20);
  final Context nodes = Context.create(1 << 22);
  final Random random = new Random(11);

  /** An F32 tensor of these values, with memory of its own. */
  Tensor floats(float[] values, long... ne) {
    Tensor tensor = inputs.newTensor(Type.F32, ne);
    inputs.allocate(cpu);
    return tensor.setFloats(values);
  }

  /** An F32 tensor of random values. */
  Tensor floats(long... ne) {
    return floats(gaussian(elements(ne)), ne);
  }

  /** An I8 tensor of random values from -127 to 127. */
  Tensor bytes(long... ne) {
    Tensor tensor = inputs.newTensor(Type.I8, ne);
    inputs.allocate(cpu);
    byte[] values = new byte[elements(ne)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (byte) (random.nextInt(255) - 127);
    }
    return tensor.setBytes(values);
  }

  /** A tensor whose data nobody reads. */
  Tensor any(Type type, long... ne) {
    return inputs.newTensor(type, ne);
  }

  private static int elements(long... ne) {
    int count = 1;
    for (long n : ne) {
      count *= (int) n;
    }
    return count;
  }

  private float[] gaussian(int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return values;
  }

  Tensor compute(Tensor output) {
    scheduler.compute(nodes.newGraph(32).expand(output.asOutput()));
    return output;
  }

  @Override
  public void close() {
    scheduler.close();
    backend.close();
    nodes.close();
    inputs.close();
    library.close();
  }
}
