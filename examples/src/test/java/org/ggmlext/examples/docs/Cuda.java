package org.ggmlext.examples.docs;

import static org.ggmlext.ext.CudaArgument.dst;
import static org.ggmlext.ext.CudaArgument.of;
import static org.ggmlext.ext.CudaArgument.src;
import static org.ggmlext.ext.CudaArgument.tensor;

import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.CudaContext;
import org.ggmlext.ext.CudaFunction;
import org.ggmlext.ext.CudaLaunch;
import org.ggmlext.ext.CudaModule;
import org.ggmlext.ext.CudaStep;
import org.ggmlext.ext.Dim3;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.FusionRule;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Pattern;
import org.ggmlext.ext.Registration;
import org.ggmlext.ext.Support;

/** The kernels in CUDA that docs/writing-a-kernel.md and docs/cuda.md show. */
final class Cuda {
  private Cuda() {}

  // docs: a kernel described
  static final String SWISH =
      """
      extern "C" __global__ void swish(const float * x, float * y, float beta, long long n) {
          const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
          if (i < n) y[i] = x[i] / (1.0f + expf(-beta * x[i]));
      }
      """;

  static Kernel swish(CudaModule module) {
    CudaFunction swish = module.function("swish");
    return Kernel.builder("app.swish.cuda", Swish.OPERATOR)
        .supports(node -> Support.when(node.src(0).isContiguous(), node.src(0) + " has gaps"))
        .launch(
            step -> {
              float beta = step.attributes(Swish.OPERATOR).beta();
              long n = step.dst().elements();
              return CudaStep.of(
                  CudaLaunch.of(
                      swish, Dim3.covering(n, 256), Dim3.of(256), src(0), dst(), of(beta), of(n)));
            });
  }

  // docs: end

  static float[] compute(Extensions extensions, Device gpu, Device cpu, float... values) {
    // docs: a module
    try (CudaModule module = CudaModule.compile(gpu, Cuda.SWISH);
        Registration _ = extensions.register(Swish.OPERATOR);
        Registration _ = extensions.register(gpu, Cuda.swish(module));
        Backend backend = gpu.newBackend();
        Backend rest = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend, rest);
        Context inputs = Context.forTensors(1);
        Context nodes = Context.forGraph(8)) {
      Tensor x = inputs.newTensor(Type.F32, values.length);
      inputs.allocate(gpu);
      x.setFloats(values);
      Tensor y = Swish.OPERATOR.create(nodes, new Swish.Attributes(1.5f), x).asOutput();
      scheduler.compute(nodes.newGraph(8).expand(y));
      return y.getFloats();
    }
    // docs: end
  }

  // docs: a rule described
  static FusionRule mulAdd(CudaFunction mulAdd) {
    return FusionRule.builder(
            "app.mul_add.cuda",
            Pattern.start("MUL").capture("x", 0).capture("w", 1).then("ADD").captureOther("c"))
        .launch(
            step ->
                CudaStep.of(
                    CudaLaunch.of(
                        mulAdd,
                        Dim3.covering(step.dst().elements(), 256),
                        Dim3.of(256),
                        tensor(step.capture("x")),
                        tensor(step.capture("w")),
                        tensor(step.capture("c")),
                        dst(),
                        of(step.dst().elements()))));
  }

  // docs: end

  // docs: a context
  static Kernel wholeForm(CudaFunction swish) {
    return Kernel.builder("app.swish.whole", Swish.OPERATOR)
        .replayReusable() // nothing but launches, and they depend on the node alone
        .execute(
            execution -> {
              CudaContext cuda = execution.cuda();
              float beta = execution.attributes(Swish.OPERATOR).beta();
              long n = execution.dst().info().elements();
              cuda.launch(
                  CudaLaunch.of(
                      swish, Dim3.covering(n, 256), Dim3.of(256), src(0), dst(), of(beta), of(n)));
              // other libraries: cuda.stream(), execution.src(0).address(), cuda.blas()
            });
  }

  // docs: end
}
