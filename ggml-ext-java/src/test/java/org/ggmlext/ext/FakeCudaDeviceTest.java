package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * CUDA devices without a GPU: the native tests' driver, on which CUDA0 is device 3 and computes,
 * and CUDA1 is one for which ggml's CUDA library has no code.
 */
@Tag("fake-cuda")
class FakeCudaDeviceTest {
  private static final Operator<NoAttributes> COPY =
      Operator.of("test.copy.v1", (sources, none) -> OutputSpec.like(sources.getFirst()));

  private CudaBench bench;

  @BeforeEach
  void open() {
    bench = new CudaBench();
  }

  @AfterEach
  void close() {
    if (bench != null) {
      bench.close();
    }
  }

  @Test
  @DisplayName("COMPAT-3: a device for which ggml has no code is refused, and CPU work goes on")
  void refusedDevice() {
    Device refused = Ggml.load().device("CUDA1");
    Kernel kernel = Kernel.builder("test.refused", "SQR").execute(execution -> {});
    assertThatThrownBy(() -> bench.ext.register(refused, kernel))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CUDA1")
        .hasMessageContaining("has no code that this GPU can run");
    assertThatThrownBy(() -> CudaModule.compile(refused, ""))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has no code that this GPU can run");
    assertThat(bench.ext.refusals())
        .containsOnlyKeys(refused)
        .extractingByKey(refused)
        .asString()
        .contains("fake_ggml_cuda_others.so")
        .contains("sm_90")
        .contains("CUDA 13.0")
        .contains("sm_86, sm_120a, PTX 9.1 for compute_86");
    try (Backend backend = bench.cpu.newBackend().threads(1);
        Scheduler scheduler = Scheduler.of(backend);
        Context inputs = Context.forTensors(1);
        Context nodes = Context.forGraph(4)) {
      Tensor x = inputs.newTensor(Type.F32, 3);
      inputs.allocate(bench.cpu);
      x.setFloats(1, 2, 3);
      Tensor y = nodes.sqr(x).asOutput();
      scheduler.compute(nodes.newGraph(4).expand(y));
      assertThat(y.getFloats()).containsExactly(1, 4, 9);
    }
  }

  @Test
  @DisplayName("JAVA-3: kernels on the CPU's threads are refused where the CPU cannot read")
  void hostKernels() {
    assertThat(bench.cpu.hasHostMemory()).isTrue();
    assertThat(bench.device.hasHostMemory()).isFalse();
    assertThatThrownBy(
            () -> bench.register(Kernel.builder("test.rows", "SQR").rows((task, first, end) -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("test.rows")
        .hasMessageContaining("memory of CUDA0")
        .hasMessageContaining("launch()");
    assertThatThrownBy(
            () ->
                bench.register(
                    FusionRule.builder("test.rule", Pattern.start("SQR").then("SQRT"))
                        .run(task -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("test.rule");
  }

  /** Computes a node of a kernel that runs {@code body}, which is to throw. */
  private Throwable thrownInside(WholeBody body) {
    bench.register(COPY);
    bench.register(
        Kernel.builder("test.copy.cuda", COPY)
            .prepare(context -> Prepared.NOTHING.withWorkspace(64))
            .execute(body));
    Tensor x = bench.input(4);
    x.setFloats(1, 2, 3, 4);
    Tensor y = COPY.create(bench.nodes, x);
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    assertThatThrownBy(() -> bench.compute(bench.graph(y)))
        .isInstanceOf(GgmlException.class)
        .satisfies(e -> thrown.set(e.getCause()));
    return thrown.get();
  }

  @Test
  @DisplayName("JAVA-3: reading a tensor that only the device can read is an exception")
  void data() {
    assertThat(thrownInside(execution -> execution.src(0).data()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("which the CPU cannot read")
        .hasMessageContaining("address()");
  }

  @Test
  @DisplayName("JAVA-3: every way to the bytes of such a tensor is closed")
  void allWays() {
    List<WholeBody> ways =
        List.of(
            execution -> execution.dst().setFloat(0, 0, 0, 0, 1),
            execution -> execution.src(0).getFloat(0, 0, 0, 0),
            execution -> execution.src(0).row(0),
            execution -> execution.workspace());
    List<Throwable> thrown = new ArrayList<>();
    assertThat(
            thrownInside(
                execution -> {
                  assertThat(execution.dst().address()).isNotZero();
                  assertThat(execution.src(0).address()).isNotZero();
                  assertThat(execution.workspaceAddress() % 128).isZero();
                  assertThat(execution.workspaceAddress()).isNotZero();
                  for (WholeBody way : ways) {
                    try {
                      way.execute(execution);
                    } catch (IllegalStateException e) {
                      thrown.add(e);
                    }
                  }
                  throw new ArithmeticException("the end");
                }))
        .isInstanceOf(ArithmeticException.class);
    assertThat(thrown).hasSameSizeAs(ways);
  }

  @Test
  @DisplayName("SERV-2: a kernel gets device and stream, during the call and on its thread only")
  void cudaContext() {
    AtomicReference<Execution> execution = new AtomicReference<>();
    AtomicReference<CudaContext> context = new AtomicReference<>();
    List<@Nullable Throwable> elsewhere = new ArrayList<>();
    assertThat(
            thrownInside(
                e -> {
                  execution.set(e);
                  context.set(e.cuda());
                  assertThat(e.cuda().device()).isEqualTo(3);
                  assertThat(e.cuda().stream()).isNotZero();
                  Thread.ofPlatform()
                      .start(
                          () -> {
                            elsewhere.add(catchThrowable(e::cuda));
                            elsewhere.add(catchThrowable(context.get()::stream));
                            elsewhere.add(catchThrowable(context.get()::blas));
                          })
                      .join();
                  throw new ArithmeticException("the end");
                }))
        .isInstanceOf(ArithmeticException.class);
    assertThat(elsewhere)
        .hasSize(3)
        .allSatisfy(
            thrown ->
                assertThat(thrown)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("on which the kernel was called"));
    assertThatThrownBy(() -> execution.get().cuda())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is over");
    assertThatThrownBy(() -> context.get().stream()).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> context.get().device()).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> context.get().blas()).isInstanceOf(IllegalStateException.class);
  }
}
