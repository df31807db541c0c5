package org.ggmlext.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.GgufFile;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.examples.int8.Int8CheckpointWriter;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.FusionRule;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Plan;
import org.ggmlext.ext.Registration;
import org.ggmlext.ext.ops.Int8Layer;
import org.ggmlext.ext.ops.LinearI8;
import org.ggmlext.kit.Input;
import org.ggmlext.kit.OperatorCheck;
import org.ggmlext.kit.Report;
import org.ggmlext.kit.Verdict;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs what the documents show. */
class SnippetsTest {
  private static final int ROW = 67; // no multiple of a vector's length
  private static final int ROWS = 5;

  private final Ggml ggml = Ggml.load();
  private final Extensions extensions = Extensions.attach(ggml);
  private final Device cpu = ggml.device(DeviceType.CPU);
  private final Backend backend = cpu.newBackend().threads(2);
  private final Scheduler scheduler = Scheduler.of(backend);
  private final Context inputs = Context.forTensors(8);
  private final Context nodes = Context.forGraph(64);
  private final List<AutoCloseable> registrations = new ArrayList<>();
  private final PrintStream out = System.out;

  @AfterEach
  void close() throws Exception {
    System.setOut(out);
    scheduler.close();
    backend.close();
    nodes.close();
    inputs.close();
    for (AutoCloseable registration : registrations.reversed()) {
      registration.close();
    }
  }

  private Registration register(Kernel kernel) {
    Registration registration = extensions.register(cpu, kernel);
    registrations.add(registration);
    return registration;
  }

  private Tensor input() {
    Tensor x = inputs.newTensor(Type.F32, ROW, ROWS);
    inputs.allocate(cpu);
    return x.setFloats(values());
  }

  private static float[] values() {
    float[] values = new float[ROW * ROWS];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) Math.sin(1.7 * i + 0.3);
    }
    return values;
  }

  private Graph graph(Tensor output) {
    return nodes.newGraph(32).expand(output.asOutput());
  }

  private float[] compute(Tensor output) {
    scheduler.compute(graph(output));
    return output.getFloats();
  }

  private String printed(Runnable action) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      action.run();
    } finally {
      System.setOut(out);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  private static void assertSwish(float[] actual, double beta) {
    float[] x = values();
    assertThat(actual).hasSameSizeAs(x);
    for (int i = 0; i < x.length; i++) {
      assertThat((double) actual[i])
          .isCloseTo(x[i] / (1 + Math.exp(-beta * (double) x[i])), within(1e-6));
    }
  }

  @Test
  @DisplayName("README: the first program prints the sixth powers, and a plan with its kernel")
  void firstProgram() {
    assertThat(printed(() -> FirstProgram.main(new String[0])))
        .contains("[1.0, 64.0, 729.0, 4096.0, 15625.0, 46656.0]")
        .contains("app.cube.java: app.cube.v1");
  }

  @Test
  @DisplayName(
      "README: the first program's kernel is right for all that it takes, and takes no views")
  void firstProgramsKernel() {
    try (Registration _ = extensions.register(FirstProgram.CUBE);
        Registration kernel = extensions.register(cpu, FirstProgram.KERNEL)) {
      Report report =
          OperatorCheck.of(
                  kernel,
                  (check, sources) -> FirstProgram.CUBE.create(check, sources.getFirst()),
                  sources ->
                      Arrays.stream(sources.getFirst().toArray()).map(x -> x * x * x).toArray())
              .inputs(shape -> List.of(Input.of(Type.F32, shape)))
              .tolerance(1e-5, 1e-5)
              .run();
      assertThat(report.rows(Verdict.FAILED)).isEmpty();
      assertThat(report.rows(Verdict.PASSED)).isNotEmpty();
      Tensor x = input();
      assertThatThrownBy(
              () -> compute(FirstProgram.CUBE.create(nodes, nodes.permute(x, 1, 0, 2, 3))))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("can compute app.cube.v1")
          .hasMessageEndingWith(
              "on CPU, kernel app.cube.java: does not support it: only F32 without gaps");
    }
  }

  @Test
  @DisplayName("writing-an-operator, writing-a-kernel: swish by rows; bad sources are refused")
  void operator() {
    registrations.add(extensions.register(Swish.OPERATOR));
    register(Kernels.ROWS);
    Tensor x = input();
    assertSwish(compute(Usage.create(nodes, x)), 1.5);
    assertThatThrownBy(() -> Swish.OPERATOR.create(nodes, new Swish.Attributes(1), x, x))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("swish takes 1 source, not 2")
        .hasCauseInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("writing-a-kernel: the C library is asked before the kernel in Java")
  void cKernel(@TempDir Path folder) throws Exception {
    registrations.add(extensions.register(Swish.OPERATOR));
    register(Kernels.ROWS);
    Path library =
        CCompiler.sharedLibrary(
            Path.of("src/test/c/swish_kernel.c"), folder.resolve("libswish.so"));
    registrations.add(Usage.library(extensions, cpu, library));
    assertSwish(compute(Usage.create(nodes, input())), 1.5);
    assertThat(extensions.plans(backend).getFirst().stepsOf("app.swish.c")).hasSize(1);
  }

  @Test
  @DisplayName("writing-a-kernel: the override computes long rows, and leaves short ones to ggml")
  void override() {
    Registration kernel = register(Kernels.OVERRIDE);
    float[] x = values();
    float[] actual = compute(nodes.sqr(input()));
    for (int i = 0; i < x.length; i++) {
      assertThat(actual[i]).isEqualTo(x[i] * x[i]);
    }
    assertThat(kernel.stats().executed()).isEqualTo(1);
    Tensor shortRow = inputs.newTensor(Type.F32, 4);
    inputs.allocate(cpu);
    shortRow.setFloats(1, 2, 3, 4);
    assertThat(compute(nodes.sqr(shortRow))).containsExactly(1, 4, 9, 16);
    assertThat(kernel.stats().executed()).isEqualTo(1);
    assertThat(extensions.plans(backend).stream().map(Plan::toString))
        .anyMatch(text -> text.contains("its rows are short"));
  }

  @Test
  @DisplayName("writing-a-kernel: a kernel for UNARY takes the function that it asks for")
  void function() {
    Registration kernel =
        register(
            Kernel.builder("docs.relu", "UNARY")
                .supports(Kernels::isRelu)
                .rows(
                    (task, first, end) -> {
                      for (long row = first; row < end; row++) {
                        for (long i = 0; i < task.dst().ne(0); i++) {
                          float v = task.src(0).getFloat(i, row, 0, 0);
                          task.dst().setFloat(i, row, 0, 0, Math.max(v, 0));
                        }
                      }
                    }));
    Tensor relu = nodes.relu(input());
    assertThat(relu.op()).isEqualTo("RELU");
    float[] x = values();
    float[] actual = compute(nodes.neg(relu));
    for (int i = 0; i < x.length; i++) {
      assertThat(actual[i]).isEqualTo(-Math.max(x[i], 0));
    }
    assertThat(kernel.stats().executed()).isEqualTo(1);
    assertThat(printed(() -> Usage.plans(extensions, backend)))
        .contains("docs.relu: does not support it: it is NEG, not RELU");
  }

  @Test
  @DisplayName("model-files: what is written is read, and loaded into tensors")
  void modelFiles(@TempDir Path folder) {
    float[] bias = {1, 2, 3};
    Tensor weight = input();
    Path gguf = folder.resolve("model.gguf");
    ModelFiles.writeGguf(gguf, weight, bias);
    assertThat(printed(() -> assertThat(ModelFiles.layers(gguf)).isEqualTo(2)))
        .contains("blk.0.weight F32 [67, 5]")
        .contains("blk.0.bias F32 [3]");
    try (GgufFile file = GgufFile.open(gguf);
        Context weights = Context.forTensors(file.tensors().size())) {
      Map<String, Tensor> tensors = ModelFiles.load(file, weights, cpu);
      assertThat(tensors.get("blk.0.weight").getFloats()).isEqualTo(values());
      assertThat(tensors.get("blk.0.weight").name()).isEqualTo("blk.0.weight");
      assertThat(tensors.get("blk.0.bias").getFloats()).isEqualTo(bias);
    }
    Path safetensors = folder.resolve("model.safetensors");
    ModelFiles.writeSafetensors(safetensors, weight, bias);
    try (Context weights = Context.forTensors(1)) {
      assertThat(ModelFiles.readSafetensors(safetensors, weights, cpu)).isEqualTo(bias);
      assertThat(weights.tensors().getFirst().getFloats()).isEqualTo(values());
    }
  }

  @Test
  @DisplayName("README, docs: a result is read until the scheduler allocates another graph")
  void results() {
    Tensor y = nodes.sqr(input());
    assertThat(compute(y)).isEqualTo(y.getFloats());
    compute(nodes.neg(input()));
    assertThatThrownBy(y::getFloats)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has no memory: allocate its context or its graph first");
  }

  @Test
  @DisplayName("errors: no plans are printed where nothing is registered, or nothing was computed")
  void noPlans(@TempDir Path folder) throws Exception {
    compute(nodes.sqr(input()));
    Path picture = folder.resolve("plan.svg");
    Usage.picture(extensions, backend, picture);
    assertThat(picture).doesNotExist();
    assertThat(printed(() -> Usage.plans(extensions, backend))).isEmpty();
    register(Kernels.OVERRIDE);
    assertThat(printed(() -> Usage.plans(extensions, backend))).isEmpty();
  }

  @Test
  @DisplayName("observing: a rule is timed by computes with it and without")
  void onAndOff() {
    Registration kernel = register(Kernels.OVERRIDE);
    Tensor x = input();
    Graph graph = graph(nodes.sqr(x));
    assertThat(printed(() -> Usage.onAndOff(kernel, scheduler, graph, () -> x.setFloats(values()))))
        .containsPattern("(?s)off: .* ms.*on: .* ms.*off: .* ms.*on: .* ms");
    assertThat(kernel.stats().executed()).isEqualTo(22);
  }

  @Test
  @DisplayName("fusion: a directly computed graph runs singly, but by a scheduler's plan fused")
  void direct() {
    Registration rule = extensions.register(cpu, Fusion.RULE);
    registrations.add(rule);
    Tensor x = input();
    Graph graph = graph(nodes.add(nodes.mul(x, x), x));
    scheduler.compute(graph);
    assertThat(rule.stats().executed()).isEqualTo(1);
    backend.compute(graph);
    assertThat(rule.stats().executed()).isEqualTo(2);
    try (Backend other = cpu.newBackend().threads(2)) {
      other.compute(graph);
      assertThat(rule.stats().executed()).isEqualTo(2);
    }
  }

  @Test
  @DisplayName("writing-a-kernel: phases with scratch memory, and the whole form")
  void phasesAndWhole() {
    Registration phases = register(Kernels.PHASES);
    Registration whole = register(Kernels.WHOLE);
    double sum = 0;
    for (float value : values()) {
      sum += value;
    }
    Tensor x = input();
    assertThat((double) compute(nodes.sin(nodes.sum(x)))[0]).isCloseTo(Math.sin(sum), within(1e-5));
    assertThat(phases.stats().executed()).isEqualTo(1);
    assertThat(whole.stats().executed()).isEqualTo(1);
  }

  @Test
  @DisplayName("fusion: the rule fires, behind the optimiser, and its result is that of ggml")
  void fusion() {
    Registration rule = extensions.register(cpu, Fusion.RULE);
    registrations.add(rule);
    registrations.add(extensions.register(cpu, Fusion.TOGETHER));
    float[] x = values();
    Tensor input = input();
    Tensor product = nodes.mul(input, input).name("product");
    Tensor between = nodes.sqr(input).name("between");
    float[] actual = compute(nodes.add(product, between).name("sum"));
    assertThat(printed(() -> Usage.order(extensions, backend)))
        .contains("[SQR between, MUL product, ADD sum]");
    for (int i = 0; i < x.length; i++) {
      assertThat(actual[i]).isEqualTo(x[i] * x[i] + x[i] * x[i]);
    }
    assertThat(rule.stats().executed()).isEqualTo(1);
    Tensor twice = nodes.mul(input, input);
    float[] sums = compute(nodes.add(twice, twice));
    for (int i = 0; i < x.length; i++) {
      assertThat(sums[i]).isEqualTo(x[i] * x[i] + x[i] * x[i]);
    }
    assertThat(rule.stats().executed()).isEqualTo(1);
  }

  @Test
  @DisplayName("fusion: the matcher takes a whole chain, and says why it leaves one node")
  void chain() {
    Registration rule = extensions.register(cpu, Fusion.CHAIN);
    registrations.add(rule);
    float[] x = values();
    Tensor input = input();
    float[] actual = compute(nodes.sqr(nodes.sqr(nodes.sqr(input))));
    for (int i = 0; i < x.length; i++) {
      assertThat((double) actual[i]).isCloseTo(Math.pow(x[i], 8), within(1e-6));
    }
    assertThat(rule.stats().executed()).isEqualTo(1);
    compute(nodes.sqr(input));
    assertThat(printed(() -> Usage.plans(extensions, backend)))
        .contains("app.sqr_chain: one SQR alone is left to ggml");
  }

  @Test
  @DisplayName("writing-a-kernel, cuda: without a GPU a kernel's module is refused by name")
  void cudaWithoutGpu() {
    assertThatThrownBy(() -> Cuda.compute(extensions, cpu, cpu, 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device CPU is no CUDA device");
    registrations.add(extensions.register(Swish.OPERATOR));
    register(Cuda.wholeForm(null));
    Graph graph = graph(Usage.create(nodes, input()));
    assertThatThrownBy(() -> scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .rootCause()
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("the backend is no CUDA backend");
    FusionRule rule = Cuda.mulAdd(null);
    assertThatThrownBy(() -> extensions.register(cpu, rule))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("app.mul_add.cuda launches CUDA kernels, but CPU is no attached");
  }

  @Test
  @DisplayName("writing-a-kernel, cuda: on a GPU, a kernel from source text computes swish")
  void cuda() {
    Optional<Device> gpu =
        ggml.devices().stream().filter(device -> device.name().startsWith("CUDA")).findFirst();
    assumeTrue(gpu.isPresent(), "ggml has no CUDA device here");
    assertSwish(Cuda.compute(extensions, gpu.get(), cpu, values()), 1.5);
  }

  @Test
  @DisplayName("threads-and-lifetimes: registrations are closed behind the backend")
  void lifetimes() {
    assertSwish(Usage.lifetimes(input()), 1.5);
  }

  @Test
  @DisplayName("int8: a layer of a checkpoint, and two layers on rows that they share")
  void int8(@TempDir Path folder) {
    registrations.add(Int8.register(extensions, cpu));
    int features = 64;
    float[] unit = new float[features * features];
    for (int i = 0; i < features; i++) {
      unit[i * features + i] = 2;
    }
    Path file = folder.resolve("int8.safetensors");
    new Int8CheckpointWriter().addLayer("attention.query", unit, features, 64).write(file);
    Tensor x = inputs.newTensor(Type.F32, features, ROWS);
    inputs.allocate(cpu);
    x.setFloats(Arrays.copyOf(values(), features * ROWS));
    try (Context weights = Context.forTensors(4)) {
      float[] y = compute(Int8.layer(file, weights, nodes, cpu, x));
      for (int i = 0; i < y.length; i++) {
        // 64 products of +-0.25 with rotated values up to 8, each off by half a step of 8 / 127.
        assertThat(y[i]).isCloseTo(2 * x.getFloats()[i], within(0.51f));
      }
      Tensor weight = weights.tensors().get(0);
      Tensor scale = weights.tensors().get(1);
      assertThat(weight.shape()).isEqualTo(Shape.of(features, features));
      assertThat(scale.shape()).isEqualTo(Shape.of(1, features));
      Int8Layer twice = new Int8Layer(LinearI8.of(weight).withWeightScale(scale), 64);
      Tensor batch = nodes.reshape(x, features, 1, ROWS);
      for (Tensor shared : Int8.shared(nodes, batch, twice, twice)) {
        assertThat(shared.shape()).isEqualTo(batch.shape());
        assertThat(compute(shared)).isEqualTo(y);
      }
    }
  }

  @Test
  @DisplayName("errors: what a kernel throws is the cause; profiling gives times")
  void failures(@TempDir Path folder) throws Exception {
    IllegalStateException thrown = new IllegalStateException("no mood");
    Registration kernel =
        register(
            Kernel.builder("docs.fails", "SQR")
                .run(
                    task -> {
                      throw thrown;
                    }));
    Tensor x = input();
    assertThat(Usage.failure(scheduler, graph(nodes.sqr(x))))
        .contains("docs.fails")
        .endsWith(" / " + thrown);
    kernel.setEnabled(false);
    register(Kernels.WHOLE);
    Graph graph = graph(nodes.sin(x));
    assertThat(printed(() -> Usage.profile(extensions, scheduler, graph, backend)))
        .contains("app.sin.java")
        .contains(" us");
    Path picture = folder.resolve("plan.svg");
    Usage.picture(extensions, backend, picture);
    assertThat(picture).content().startsWith("<svg").contains("app.sin.java");
    Usage.abort(backend);
    assertThat(printed(() -> Usage.attached(ggml))).contains("graphViews=true");
  }
}
