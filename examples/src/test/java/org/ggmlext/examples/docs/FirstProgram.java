package org.ggmlext.examples.docs;

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
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.Registration;
import org.ggmlext.ext.Support;
import org.ggmlext.ext.TensorInfo;

// docs: README, the first program
public class FirstProgram {
  static final Operator<NoAttributes> CUBE =
      Operator.of("app.cube.v1", (sources, none) -> OutputSpec.like(sources.getFirst()));

  static final Kernel KERNEL =
      Kernel.builder("app.cube.java", CUBE)
          .supports(node -> Support.when(isPlain(node.src(0)), "only F32 without gaps"))
          .rows(
              (task, first, end) -> {
                for (long row = first; row < end; row++) {
                  for (long i = 0; i < task.dst().ne(0); i++) {
                    float x = task.src(0).getFloat(i, row, 0, 0);
                    task.dst().setFloat(i, row, 0, 0, x * x * x);
                  }
                }
              });

  private static boolean isPlain(TensorInfo x) {
    return x.is(Type.F32) && x.isContiguous();
  }

  public static void main(String[] args) {
    Ggml ggml = Ggml.load();
    Device cpu = ggml.device(DeviceType.CPU);
    Extensions extensions = Extensions.attach(ggml);
    try (Registration _ = extensions.register(CUBE);
        Registration _ = extensions.register(cpu, KERNEL);
        Context inputs = Context.forTensors(1);
        Context nodes = Context.forGraph(8);
        Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      Tensor x = inputs.newTensor(Type.F32, 3, 2);
      inputs.allocate(cpu);
      x.setFloats(1, 2, 3, 4, 5, 6);
      Tensor y = CUBE.create(nodes, nodes.sqr(x)).asOutput();
      scheduler.compute(nodes.newGraph(8).expand(y));
      System.out.println(Arrays.toString(y.getFloats()));
      System.out.println(extensions.plans(backend).getFirst());
    }
  }
}
// docs: end
