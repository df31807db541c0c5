package org.example.snake;

import java.nio.file.Path;
import java.util.Arrays;
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
import org.ggmlext.ext.Registration;

/** Computes {@code snake(snake(x + bias))}: the inner one fused, the outer one in C. */
public final class Main {
  /** Where README.md's gcc line puts the kernel. */
  static final Path LIBRARY = Path.of("target", "libsnake.so");

  private Main() {}

  public static void main(String[] args) {
    Ggml ggml = Ggml.load();
    Device cpu = ggml.device(DeviceType.CPU);
    Extensions extensions = Extensions.attach(ggml);
    try (Registration _ = extensions.register(Snake.OPERATOR);
        Registration _ = extensions.register(cpu, Snake.KERNEL);
        Registration _ = extensions.register(cpu, BiasSnake.RULE);
        LibraryRegistration _ = extensions.register(cpu, KernelLibrary.load(LIBRARY));
        Context inputs = Context.forTensors(2);
        Context nodes = Context.forGraph(8);
        Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      Tensor x = inputs.newTensor(Type.F32, 3, 2);
      Tensor bias = inputs.newTensor(Type.F32, 3);
      inputs.allocate(cpu);
      x.setFloats(1, 2, 3, 4, 5, 6);
      bias.setFloats(0.5f, 0, -0.5f);
      Snake.Attributes a = new Snake.Attributes(2);
      Tensor inner = Snake.OPERATOR.create(nodes, a, nodes.add(x, bias));
      Tensor y = Snake.OPERATOR.create(nodes, a, inner).asOutput();
      scheduler.compute(nodes.newGraph(8).expand(y));
      System.out.println(Arrays.toString(y.getFloats()));
      System.out.print(extensions.plans(backend).getFirst());
    }
  }
}
