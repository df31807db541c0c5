package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.ggmlext.ext.CudaArgument.dst;
import static org.ggmlext.ext.CudaArgument.of;
import static org.ggmlext.ext.CudaArgument.src;
import static org.ggmlext.ext.CudaArgument.tensor;
import static org.ggmlext.ext.CudaArgument.workspace;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Kernels from source text and PTX, on a GPU, and on the native tests' device without one. */
@Tag("cuda")
@Tag("fake-cuda")
class CudaModuleTest {
  record Affine(float a, float b) {}

  private static final Operator<Affine> AFFINE =
      Operator.of(
          "test.affine.v1",
          Affine.class,
          (sources, attributes) -> OutputSpec.like(sources.getFirst()));
  private static final Dim3 BLOCK = Dim3.of(128);
  private static final int ROUNDS = 6;

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

  /** The module of {@link CudaSources#TEXT}, closed at the end. */
  private CudaModule compiled() {
    try {
      return bench.own(CudaModule.compile(bench.device, CudaSources.TEXT));
    } catch (GgmlException e) {
      assumeTrue(!e.getMessage().contains("needs NVRTC"), e.getMessage());
      throw e;
    }
  }

  private static CudaLaunch affine(
      CudaFunction function, long n, Affine values, CudaArgument from, CudaArgument to) {
    return CudaLaunch.of(
        function,
        Dim3.covering(n, BLOCK.x()),
        BLOCK,
        from,
        to,
        of(values.a()),
        of(values.b()),
        of(n));
  }

  private static CudaLaunch affine(CudaFunction function, PrepareContext step) {
    return affine(function, step.dst().elements(), step.attributes(AFFINE), src(0), dst());
  }

  private static Kernel affineKernel(Function<PrepareContext, CudaLaunch> launch) {
    return Kernel.builder("test.affine.cuda", AFFINE)
        .launch(step -> CudaStep.of(launch.apply(step)));
  }

  /** {@code affine(2 x) + 2 x}: a native node, one of ours, a native one. */
  private void runAffine(Function<PrepareContext, CudaLaunch> launch) {
    bench.register(AFFINE);
    bench.register(affineKernel(launch));
    Tensor x = bench.input(100, 7);
    Tensor doubled = bench.nodes.scale(x, 2);
    Tensor y = bench.nodes.add(AFFINE.create(bench.nodes, new Affine(3, -0.5f), doubled), doubled);
    bench.check(bench.graph(y), x, y, ROUNDS, v -> 3 * (2 * v) - 0.5 + 2 * v);
    assertRecorded(ROUNDS);
  }

  /** One execution outside, one recorded and launched, the others replayed. */
  private void assertRecorded(int computes) {
    if (System.getenv("GGML_CUDA_DISABLE_GRAPHS") == null) {
      assertThat(bench.stats().recorded()).isEqualTo(1);
      assertThat(bench.stats().replayed()).isEqualTo(computes - 1);
    }
  }

  @Test
  @DisplayName("AOT-1: CUDA source text becomes a kernel of an operator: first, recorded, replayed")
  void sourceText() {
    CudaFunction function = compiled().function("test_affine");
    assertThat(function.name()).isEqualTo("test_affine");
    assertThat(function.parameterSizes()).containsExactly(8L, 8L, 4L, 4L, 8L);
    assertThat(function.maxThreadsPerBlock()).isGreaterThanOrEqualTo(BLOCK.x());
    assertThat(function.registers()).isPositive();
    assertThat(function.toString()).contains("test_affine").contains("CUDA0");
    runAffine(step -> affine(function, step));
  }

  @Test
  @DisplayName("AOT-1: a kernel that waits by itself may begin early: first, recorded, replayed")
  void earlyBegin() {
    CudaFunction function = compiled().function("test_affine");
    runAffine(step -> affine(function, step).withEarlyBegin());
  }

  @Test
  @DisplayName("AOT-1: PTX is loaded from bytes, from memory and from a file")
  void ptx(@TempDir Path folder) throws Exception {
    byte[] bytes = CudaSources.PTX.getBytes(StandardCharsets.US_ASCII);
    Path file = Files.write(folder.resolve("test.ptx"), bytes);
    try (CudaModule heap = CudaModule.load(bench.device, bytes);
        CudaModule mapped = CudaModule.load(bench.device, file);
        Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
      CudaModule module = bench.own(CudaModule.load(bench.device, memory));
      assertThat(heap.function("test_affine").parameterSizes())
          .isEqualTo(mapped.function("test_affine").parameterSizes())
          .containsExactly(8L, 8L, 4L, 4L, 8L);
      CudaFunction function = module.function("test_affine");
      runAffine(step -> affine(function, step));
    }
  }

  @Test
  @DisplayName("AOT-1: a Java-described kernel takes the place of ggml's own, which stays at hand")
  void override() {
    CudaFunction function = compiled().function("test_affine");
    AtomicInteger described = new AtomicInteger();
    Registration override =
        bench.register(
            Kernel.builder("test.scale.cuda", "SCALE")
                .supports(node -> Support.when(node.src(0).isContiguous(), "the source has gaps"))
                .launch(
                    step -> {
                      described.incrementAndGet();
                      float factor = step.node().opParamFloat(0);
                      float bias = step.node().opParamFloat(1);
                      return CudaStep.of(
                          affine(
                              function,
                              step.dst().elements(),
                              new Affine(factor, bias),
                              src(0),
                              dst()));
                    }));
    Tensor x = bench.input(33, 5);
    Tensor y = bench.nodes.add(bench.nodes.scale(x, 1.75f), x);
    Graph graph = bench.graph(y);
    bench.check(graph, x, y, 2, v -> 1.75 * v + v);
    int planned = described.get();
    bench.check(graph, x, y, ROUNDS, v -> 1.75 * v + v);
    assertThat(planned).isPositive();
    assertThat(described).hasValue(planned); // none of the author's code runs again
    assertThat(override.stats().executed()).isEqualTo(2 + ROUNDS);
    assertRecorded(2 + ROUNDS);
  }

  @Test
  @DisplayName("AOT-1: values of all kinds arrive in their order")
  void values() {
    CudaFunction function = compiled().function("test_values");
    assertThat(function.parameterSizes()).containsExactly(8L, 8L, 4L, 8L, 4L, 8L);
    bench.register(AFFINE);
    bench.register(
        Kernel.builder("test.values.cuda", AFFINE)
            .launch(
                step ->
                    CudaStep.of(
                        CudaLaunch.of(
                            function,
                            Dim3.of(3),
                            Dim3.of(32),
                            src(0),
                            dst(),
                            of(1),
                            of(2L),
                            of(0.5f),
                            of(0.25)))));
    Tensor x = bench.input(96);
    Tensor y = AFFINE.create(bench.nodes, new Affine(0, 0), x);
    bench.check(bench.graph(y), x, y, 3, v -> v * (1 + 10 * 2 + 100 * 0.5 + 1000 * 0.25));
  }

  @Test
  @DisplayName("AOT-1: a step of several launches hands values on through scratch memory")
  void workspaceBetweenLaunches() {
    CudaFunction function = compiled().function("test_affine");
    bench.register(AFFINE);
    bench.register(
        Kernel.builder("test.twice.cuda", AFFINE)
            .launch(
                step -> {
                  long n = step.dst().elements();
                  Affine values = step.attributes(AFFINE);
                  long half = (n + 31) / 32 * 128; // keeps the second half aligned
                  return CudaStep.of(
                          affine(function, n, values, src(0), workspace()),
                          affine(function, n, values, workspace(), workspace(half)),
                          affine(function, n, values, workspace(half), dst()))
                      .withWorkspace(2 * half);
                }));
    Tensor x = bench.input(50, 3);
    Tensor y = AFFINE.create(bench.nodes, new Affine(-2, 1), bench.nodes.scale(x, 1));
    bench.check(bench.graph(y), x, y, ROUNDS, v -> -2 * (-2 * (-2 * v + 1) + 1) + 1);
    assertRecorded(ROUNDS);
  }

  @Test
  @DisplayName("AOT-1: a fusion rule is described; its pattern's tensors arrive in their order")
  void rule() {
    CudaFunction function = compiled().function("test_mul_add");
    FusionRule rule =
        FusionRule.builder(
                "test.mul_add.cuda",
                Pattern.start("MUL").capture("x", 0).capture("w", 1).then("ADD").captureOther("c"))
            .launch(
                step ->
                    CudaStep.of(
                        CudaLaunch.of(
                            function,
                            Dim3.covering(step.dst().elements(), BLOCK.x()),
                            BLOCK,
                            tensor(step.capture("x")),
                            tensor(step.capture("w")),
                            tensor(step.capture("c")),
                            dst(),
                            of(step.dst().elements()))));
    bench.register(rule);
    Tensor x = bench.input(64, 4);
    Tensor w = bench.nodes.scale(x, 0.5f);
    Tensor c = bench.nodes.scale(x, 3);
    Tensor y = bench.nodes.add(c, bench.nodes.mul(x, w));
    Graph graph = bench.graph(y);
    bench.check(graph, x, y, ROUNDS, v -> v * (0.5 * v) + 3 * v);
    assertThat(bench.stats().groups()).isEqualTo(ROUNDS);
    assertThat(bench.stats().singly()).isZero();
    assertRecorded(ROUNDS);
  }

  @Test
  @DisplayName("SERV-2: a whole-form kernel launches on the context; replays call it no more")
  void cudaContext() {
    CudaFunction function = compiled().function("test_affine");
    AtomicInteger calls = new AtomicInteger();
    bench.register(AFFINE);
    bench.register(
        Kernel.builder("test.affine.whole", AFFINE)
            .replayReusable()
            .execute(
                execution -> {
                  calls.incrementAndGet();
                  CudaContext cuda = execution.cuda();
                  assertThat(cuda.stream()).isNotZero();
                  cuda.launch(
                      affine(
                          function,
                          execution.dst().info().elements(),
                          execution.attributes(AFFINE),
                          of(execution.src(0).address()),
                          dst()));
                }));
    Tensor x = bench.input(40);
    Tensor y = AFFINE.create(bench.nodes, new Affine(4, 0.25f), bench.nodes.scale(x, 2));
    bench.check(bench.graph(y), x, y, ROUNDS, v -> 4 * (2 * v) + 0.25);
    assertRecorded(ROUNDS);
    if (bench.stats().recorded() == 1) {
      assertThat(calls).hasValue(2);
    }
  }

  @Test
  @DisplayName("AOT-1: what is recorded of a closed module goes on; planning with it anew fails")
  void closedModule() {
    CudaModule module = compiled();
    bench.register(AFFINE);
    CudaFunction function = module.function("test_affine");
    bench.register(affineKernel(step -> affine(function, step)));
    Tensor x = bench.input(40);
    Tensor y = AFFINE.create(bench.nodes, new Affine(4, 1), bench.nodes.scale(x, 2));
    Graph graph = bench.graph(y);
    bench.check(graph, x, y, 3, v -> 4 * (2 * v) + 1);
    module.close();
    module.close();
    assertThat(module.isClosed()).isTrue();
    assertThatThrownBy(() -> module.function("test_affine"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    if (bench.stats().recorded() == 1) {
      bench.check(graph, x, y, 3, v -> 4 * (2 * v) + 1);
    }
    Tensor other = AFFINE.create(bench.nodes, new Affine(2, 1), bench.nodes.scale(x, 3));
    Graph another = bench.graph(other);
    assertThatThrownBy(() -> bench.compute(another))
        .isInstanceOf(GgmlException.class)
        .hasRootCauseInstanceOf(IllegalStateException.class)
        .rootCause()
        .hasMessageContaining("is closed");
  }

  /** A kernel in whole form that runs this. */
  private Tensor affineInside(Tensor x, WholeBody body) {
    bench.register(AFFINE);
    bench.register(Kernel.builder("test.affine.inside", AFFINE).execute(body));
    return AFFINE.create(bench.nodes, new Affine(4, 1), bench.nodes.scale(x, 2));
  }

  private static CudaLaunch affine(CudaFunction function, Execution execution) {
    Affine values = execution.attributes(AFFINE);
    return affine(function, execution.dst().info().elements(), values, src(0), dst());
  }

  @Test
  @DisplayName("AOT-1: more shared memory than the GPU has is refused, and the next compute works")
  void tooMuchSharedMemory() {
    CudaFunction function = compiled().function("test_affine");
    AtomicInteger bytes = new AtomicInteger(Integer.MAX_VALUE);
    Tensor x = bench.input(40);
    Tensor y =
        affineInside(
            x,
            execution ->
                execution.cuda().launch(affine(function, execution).withSharedMemory(bytes.get())));
    Graph graph = bench.graph(y);
    assertThatThrownBy(() -> bench.compute(graph))
        .isInstanceOf(GgmlException.class)
        .rootCause()
        .hasMessageContaining("bytes of dynamic shared memory, but this GPU has at most");
    bytes.set(64);
    bench.check(graph, x, y, 2, v -> 4 * (2 * v) + 1);
  }

  @Test
  @DisplayName(
      "AOT-1: a kernel that closes its own module has launched; later launches are refused")
  void closedInside() {
    CudaModule module = compiled();
    CudaFunction function = module.function("test_affine");
    Tensor x = bench.input(40);
    Tensor y =
        affineInside(
            x,
            execution -> {
              execution.cuda().launch(affine(function, execution));
              module.close();
            });
    Graph graph = bench.graph(y);
    bench.check(graph, x, y, 1, v -> 4 * (2 * v) + 1);
    assertThatThrownBy(() -> bench.compute(graph))
        .isInstanceOf(GgmlException.class)
        .rootCause()
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @Test
  @DisplayName("AOT-1: text that does not compile is refused with the compiler's log")
  void compileError() {
    compiled(); // or it is skipped
    assertThatThrownBy(
            () ->
                CudaModule.compile(
                    bench.device, "extern \"C\" __global__ void f() {}\n#error a note to find\n"))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("does not compile")
        .hasMessageContaining("a note to find")
        .hasMessageContaining("(2)"); // the line
    assertThatThrownBy(() -> CudaModule.compile(bench.device, ""))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("empty");
    assertThatThrownBy(() -> CudaModule.compile(bench.device, "extern\0"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("zero character at index 6");
    assertThatThrownBy(
            () -> CudaModule.compile(bench.device, CudaSources.TEXT, "--gpu-architecture=sm_50"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the architecture is the device's");
  }

  @Test
  @DisplayName("AOT-1: wrong devices, functions and bytes are refused by name")
  void refusals(@TempDir Path folder) throws Exception {
    assertThatThrownBy(() -> CudaModule.compile(bench.cpu, CudaSources.TEXT))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CPU is no CUDA device");
    CudaModule module = compiled();
    assertThatThrownBy(() -> module.function("test_nothing"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("test_nothing");
    assertThatThrownBy(() -> bench.ext.register(bench.cpu, affineOnScale(module)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("test.affine.scale launches CUDA kernels, but CPU is no attached");
    assertThatThrownBy(() -> CudaModule.load(bench.device, new byte[0]))
        .isInstanceOf(IllegalArgumentException.class);
    Path file = Files.writeString(folder.resolve("no.cubin"), "hello");
    assertThatThrownBy(() -> CudaModule.load(bench.device, file))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no.cubin")
        .hasMessageContaining("hello");
  }

  private Kernel affineOnScale(CudaModule module) {
    return Kernel.builder("test.affine.scale", "SCALE")
        .launch(
            step ->
                CudaStep.of(
                    affine(module.function("test_affine"), 1, new Affine(1, 0), src(0), dst())));
  }

  @Test
  @DisplayName("AOT-1: a description of what the step does not have fails the planning, by name")
  void impossibleDescriptions() {
    CudaFunction function = compiled().function("test_affine");
    bench.register(AFFINE);
    Tensor x = bench.input(8);
    int priority = 0; // the latest is asked first
    for (CudaArgument wrong : List.of(src(1), workspace(64), tensor(new Capture(1, 0)))) {
      priority++;
      bench.register(
          Kernel.builder("test.wrong.cuda" + priority, AFFINE)
              .priority(priority)
              .launch(
                  step ->
                      CudaStep.of(affine(function, 8, new Affine(1, 0), wrong, dst()))
                          .withWorkspace(64)));
      Graph graph = bench.graph(AFFINE.create(bench.nodes, new Affine(1, 1), x));
      assertThatThrownBy(() -> bench.compute(graph))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("test_affine: the step has no " + wrong);
    }
  }
}
