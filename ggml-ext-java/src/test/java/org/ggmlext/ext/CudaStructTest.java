package org.ggmlext.ext;

import static org.ggmlext.ext.CudaArgument.dst;
import static org.ggmlext.ext.CudaArgument.of;
import static org.ggmlext.ext.CudaArgument.src;
import static org.ggmlext.ext.CudaArgument.struct;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.Tensor;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** An argument that only a real compiler knows the size of. */
@Tag("cuda")
class CudaStructTest {
  @Test
  @DisplayName("AOT-1: a struct is passed as its bytes")
  void structArgument() {
    try (CudaBench bench = new CudaBench()) {
      CudaModule module = bench.own(CudaModule.compile(bench.device, CudaSources.STRUCT));
      MemorySegment pair = MemorySegment.ofArray(new long[2]);
      pair.set(ValueLayout.JAVA_FLOAT, 0, 2.5f);
      pair.set(ValueLayout.JAVA_DOUBLE, 8, -1);
      CudaFunction function = module.function("test_struct");
      bench.register(
          Kernel.builder("test.struct.cuda", "SCALE")
              .launch(
                  step ->
                      CudaStep.of(
                          CudaLaunch.of(
                              function,
                              Dim3.covering(step.dst().elements(), 32),
                              Dim3.of(32),
                              src(0),
                              dst(),
                              struct(pair),
                              of(step.dst().elements())))));
      Tensor x = bench.input(100);
      Tensor y = bench.nodes.scale(x, 7);
      bench.check(bench.graph(y), x, y, 3, v -> 2.5 * v - 1);
    }
  }
}
