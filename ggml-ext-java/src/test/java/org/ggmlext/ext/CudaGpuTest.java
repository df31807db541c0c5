package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.ggmlext.ext.CudaArgument.dst;
import static org.ggmlext.ext.CudaArgument.of;
import static org.ggmlext.ext.CudaArgument.src;
import static org.ggmlext.ext.CudaArgument.struct;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.ggmlext.Tensor;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What only a GPU with CUDA's own libraries shows. */
@Tag("cuda")
class CudaGpuTest {
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

  @Test
  @DisplayName("SERV-2: a kernel gets a cuBLAS handle, also while its plan is recorded")
  void blas() {
    AtomicLong handle = new AtomicLong();
    AtomicInteger calls = new AtomicInteger();
    try (CudaBench bench = new CudaBench()) {
      CudaModule module = bench.own(CudaModule.compile(bench.device, CudaSources.TEXT));
      CudaFunction function = module.function("test_affine");
      bench.register(
          Kernel.builder("test.blas.cuda", "SCALE")
              .captureSafe()
              .execute(
                  execution -> {
                    calls.incrementAndGet();
                    long previous = handle.getAndSet(execution.cuda().blas());
                    assertThat(handle).doesNotHaveValue(0);
                    assertThat(previous).isIn(0L, handle.get());
                    long n = execution.dst().info().elements();
                    execution
                        .cuda()
                        .launch(
                            CudaLaunch.of(
                                function,
                                Dim3.covering(n, 64),
                                Dim3.of(64),
                                src(0),
                                dst(),
                                of(3f),
                                of(0f),
                                of(n)));
                  }));
      Tensor x = bench.input(100);
      Tensor y = bench.nodes.scale(x, 3);
      bench.check(bench.graph(y), x, y, 4, v -> 3 * v);
      assertThat(calls).hasPositiveValue();
    }
  }
}
