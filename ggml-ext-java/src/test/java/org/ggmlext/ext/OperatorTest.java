package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.invoke.MethodHandles;
import org.ggmlext.Context;
import org.ggmlext.DeviceType;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.ops.QuantizeI8ConvRot;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class OperatorTest {
  private static final int F32 = 0;

  record Swish(float beta) {}

  record Attr(int n, @Nullable DeviceType mode) {}

  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  private Operator<Swish> swish() {
    return Operator.of(
        Workbench.unique("test.swish") + ".v1",
        Swish.class,
        (sources, swish) -> OutputSpec.like(sources.get(0)));
  }

  private static Kernel swishKernel(Operator<Swish> operator) {
    return Kernel.rows(
        Workbench.unique("test.swish.java"),
        operator,
        (task, first, end) -> {
          float beta = task.attributes(operator).beta();
          TensorView x = task.src(0);
          for (long row = first; row < end; row++) {
            for (long i = 0; i < x.ne(0); i++) {
              float v = x.getFloat(i, row, 0, 0);
              task.dst().setFloat(i, row, 0, 0, (float) (v / (1 + Math.exp(-beta * v))));
            }
          }
        });
  }

  @Test
  @DisplayName(
      "OP-1, OP-2, JAVA-3: an operator with a Java kernel computes with each node's attributes")
  void computes() {
    Operator<Swish> operator = swish();
    bench.register(operator);
    bench.register(swishKernel(operator));
    float[] x = Workbench.values(64 * 5);
    Tensor input = bench.input(x, 64, 5);
    Tensor one = operator.create(bench.nodes, new Swish(1), input);
    Tensor two = operator.create(bench.nodes, new Swish(2), one);
    assertThat(two.type()).isEqualTo(Type.F32);
    assertThat(two.shape()).isEqualTo(input.shape());
    float[] out = bench.compute(two);
    for (int i = 0; i < x.length; i++) {
      double first = x[i] / (1 + Math.exp(-x[i]));
      assertThat((double) out[i]).isCloseTo(first / (1 + Math.exp(-2 * first)), within(1e-6));
    }
  }

  @Test
  @DisplayName(
      "OP-3: an operator without a kernel is supported by no device; computing it is an error")
  void withoutKernel() {
    Operator<Swish> operator = swish();
    bench.register(operator);
    Tensor node = operator.create(bench.nodes, new Swish(1), bench.input(Workbench.values(8), 8));
    assertThat(bench.cpu.supportsOp(node)).isFalse();
    Graph graph = bench.graph(node);
    assertThatThrownBy(() -> bench.scheduler.compute(graph)).isInstanceOf(GgmlException.class);
    // The process lives, and other graphs compute.
    float[] sum =
        bench.compute(
            bench.nodes.add(
                bench.input(new float[] {1, 2}, 2), bench.input(new float[] {3, 4}, 2)));
    assertThat(sum).containsExactly(4, 6);
  }

  @Test
  @DisplayName("OP-3: a node that no kernel takes is named with its operator and each refusal")
  void whyNoKernel() {
    Operator<Swish> operator = swish();
    bench.register(operator);
    Tensor node =
        operator
            .create(bench.nodes, new Swish(1), bench.input(Workbench.values(8), 8))
            .name("swished");
    Graph graph = bench.graph(node);
    String what =
        "no device of [CPU] can compute %s of type f32 (node \"swished\"): "
            .formatted(operator.name());
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .hasMessage(what + "no kernel of it is registered on CPU");
    Kernel halves =
        Kernel.builder(Workbench.unique("test.swish.halves"), operator)
            .supports(info -> Support.when(info.dst().is(Type.F16), "only F16"))
            .run(task -> {});
    Kernel fails =
        Kernel.builder(Workbench.unique("test.swish.fails"), operator)
            .supports(
                info -> {
                  throw new IllegalStateException("no idea");
                })
            .run(task -> {});
    bench.register(halves);
    bench.register(fails);
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .hasMessageStartingWith(
            what
                + "on CPU, kernel %s: does not support it: only F16, ".formatted(halves.name())
                + "kernel %s: supports failed (FAILED): ".formatted(fails.name())
                + "java.lang.IllegalStateException: no idea [#");
    Kernel all = Kernel.builder(Workbench.unique("test.swish.all"), operator).run(task -> {});
    Registration registration = bench.register(all);
    assertThat(bench.ext.plan(bench.cpu, node).steps())
        .extracting(Plan.Step::kernel)
        .containsExactly(all.name());
    registration.setEnabled(false);
    Plan plan = bench.ext.plan(bench.cpu, node);
    assertThat(plan.steps()).isEmpty();
    assertThat(plan.refusals())
        .extracting(refusal -> refusal.reason().replaceFirst(" \\[#\\d+]", ""))
        .containsExactly(
            "does not support it: only F16",
            "supports failed (FAILED): java.lang.IllegalStateException: no idea",
            "switched off");
    assertThat(plan.nodes())
        .containsExactly(new Plan.Node("swished", operator.name(), F32, node.shape()));
    Plan sum = bench.ext.plan(bench.cpu, bench.nodes.add(node, node));
    assertThat(sum.steps()).extracting(Plan.Step::kernel).containsExactly((String) null);
  }

  @Test
  @DisplayName("OP-2: a node's attributes can be read back; nodes of others have none")
  void attributesOf() {
    Operator<Swish> operator = swish();
    Operator<Swish> other = swish();
    bench.register(operator);
    bench.register(other);
    Tensor x = bench.input(Workbench.values(8), 8);
    assertThat(operator.attributesOf(operator.create(bench.nodes, new Swish(0.75f), x)))
        .isEqualTo(new Swish(0.75f));
    assertThat(operator.attributesOf(other.create(bench.nodes, new Swish(2), x))).isNull();
    assertThat(operator.attributesOf(bench.nodes.sqr(x))).isNull();
    assertThat(operator.attributesOf(x)).isNull();
  }

  @Test
  @DisplayName("OP-1: an unknown operator is refused by name")
  void unknown() {
    Operator<Swish> operator = swish();
    Tensor input = bench.input(Workbench.values(8), 8);
    assertThatThrownBy(() -> operator.create(bench.nodes, new Swish(1), input))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(operator.name());
  }

  @Test
  @DisplayName("OP-1: what is not registered says how it is, of a library and shipped ones too")
  void howToRegister() {
    Tensor x = bench.input(Workbench.values(8), 8);
    Operator<Swish> operator = swish();
    assertThatThrownBy(() -> operator.create(bench.nodes, new Swish(1), x))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "operator \"%s\" is not registered: call extensions.register(operator) first"
                .formatted(operator.name()));
    Operator<Swish> ofLibrary =
        Operator.ofLibrary("their.swish.v1", Swish.class, MethodHandles.lookup());
    assertThatThrownBy(() -> ofLibrary.create(bench.nodes, new Swish(1), x))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "operator \"their.swish.v1\" is not registered: register its kernel library first");
    assertThatThrownBy(() -> QuantizeI8ConvRot.create(bench.nodes, x, 4))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "operator \"sd.quantize_i8_convrot.v1\" is not registered: register"
                + " KernelLibrary.bundled(\"cpu\") first");
  }

  @Test
  @DisplayName("OP-1: attributes that are missing, or have a component of null, are named")
  void attributesMissing() {
    Operator<Swish> operator = swish();
    assertThatThrownBy(() -> operator.create(bench.nodes))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(
            operator.name() + " has attributes: create(context, new Swish(...), sources...)");
    Operator<Attr> withMode =
        Operator.of("test.mode.v1", Attr.class, (sources, attr) -> OutputSpec.like(sources.get(0)));
    assertThatThrownBy(() -> withMode.create(bench.nodes, new Attr(1, null)))
        .isInstanceOf(NullPointerException.class)
        .hasMessage("component mode of Attr is null");
  }

  @Test
  @DisplayName("CORE-3: a duplicate operator is refused, and the first one stays")
  void duplicate() {
    Operator<Swish> operator = swish();
    bench.register(operator);
    Operator<Swish> other =
        Operator.of(operator.name(), Swish.class, (sources, swish) -> OutputSpec.of(Type.F32, 1));
    assertThatThrownBy(() -> bench.ext.register(other))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(operator.name());
    Tensor node = operator.create(bench.nodes, new Swish(1), bench.input(Workbench.values(8), 8));
    assertThat(node.ne(0)).isEqualTo(8);
  }

  @Test
  @DisplayName("OP-1: a name without version or with other characters is refused")
  void badName() {
    for (String name : new String[] {"", "swish", "app swish.v1", "app.süß.v1", "x.".repeat(80)}) {
      Operator<NoAttributes> operator =
          Operator.of(name, (sources, none) -> OutputSpec.like(sources.get(0)));
      assertThatThrownBy(() -> bench.ext.register(operator))
          .as(name)
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  @DisplayName("OP-1, JAVA-4: what inference throws is the cause, and nothing is made")
  void inferenceThrows() {
    IllegalStateException thrown = new IllegalStateException("rows must be even");
    Operator<NoAttributes> operator =
        Operator.of(
            Workbench.unique("test.throws") + ".v1",
            (sources, none) -> {
              throw thrown;
            });
    bench.register(operator);
    Tensor input = bench.input(Workbench.values(8), 8);
    long free = bench.nodes.freeBytes();
    assertThatThrownBy(() -> operator.create(bench.nodes, input))
        .hasMessageContaining("rows must be even")
        .hasCause(thrown);
    assertThat(bench.nodes.freeBytes()).isEqualTo(free);
  }

  @Test
  @DisplayName("OP-1: inference with a wrong rank, a zero or negative size, or nothing, is refused")
  void badInference() {
    refuses("no rank", (sources, none) -> OutputSpec.of(Type.F32));
    refuses("rank 5", (sources, none) -> OutputSpec.of(Type.F32, 1, 1, 1, 1, 1));
    refuses("zero", (sources, none) -> OutputSpec.of(Type.F32, 4, 0));
    refuses("negative", (sources, none) -> OutputSpec.of(Type.F32, 4, -1));
    refuses("part of a block", (sources, none) -> OutputSpec.of(Type.Q4_0, 33));
    refuses("overflow", (sources, none) -> OutputSpec.of(Type.F32, 1L << 40, 1L << 40));
  }

  @SuppressWarnings("NullAway")
  @Test
  @DisplayName("OP-1: inference that returns null is refused")
  void nullInference() {
    refuses("null", (sources, none) -> null);
  }

  private void refuses(String what, Inference<NoAttributes> inference) {
    Operator<NoAttributes> operator = Operator.of(Workbench.unique("test.bad") + ".v1", inference);
    bench.register(operator);
    Tensor input = bench.input(Workbench.values(8), 8);
    assertThatThrownBy(() -> operator.create(bench.nodes, input))
        .as(what)
        .isInstanceOfAny(IllegalArgumentException.class, GgmlException.class);
  }

  @Test
  @DisplayName("OP-2: too many sources, a full context and a closed one are refused")
  void badCreate() {
    Operator<NoAttributes> operator =
        Operator.of(
            Workbench.unique("test.create") + ".v1",
            (sources, none) -> OutputSpec.like(sources.get(0)));
    bench.register(operator);
    Tensor input = bench.input(Workbench.values(8), 8);
    Tensor[] eleven = new Tensor[11];
    java.util.Arrays.fill(eleven, input);
    assertThatThrownBy(() -> operator.create(bench.nodes, eleven)).hasMessageContaining("11");
    try (Context full = Context.create(64)) {
      assertThatThrownBy(() -> operator.create(full, input)).hasMessageContaining("full");
    }
    Context closed = Context.create(4096);
    closed.close();
    assertThatThrownBy(() -> operator.create(closed, input))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("CORE-4: an operator that has kernels stays registered, and says so")
  void inUse() {
    Operator<Swish> operator = swish();
    Registration registration = bench.register(operator);
    try (Registration kernel = bench.ext.register(bench.cpu, swishKernel(operator))) {
      assertThatThrownBy(registration::close).isInstanceOf(IllegalStateException.class);
      assertThat(registration.isOpen()).isTrue();
      assertThat(kernel.isOpen()).isTrue();
    }
    registration.close();
    registration.close();
    assertThat(registration.isOpen()).isFalse();
    assertThatThrownBy(registration::stats).isInstanceOf(IllegalStateException.class);
    // The name is free again.
    bench.register(
        Operator.of(operator.name(), Swish.class, (sources, s) -> OutputSpec.like(sources.get(0))));
  }

  @Test
  @DisplayName("JAVA-3: a name that C would cut at a zero character is refused, and it shown")
  void zeroCharacters() {
    Operator<NoAttributes> operator =
        Operator.of("test.zero.v1\0x", (sources, none) -> OutputSpec.like(sources.getFirst()));
    assertThatThrownBy(() -> bench.register(operator))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"test.zero.v1\\0x\"");
    Tensor x = bench.inputs.newTensor(Type.F32, 4);
    assertThatThrownBy(() -> operator.create(bench.nodes, x))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"test.zero.v1\\0x\"");
    assertThatThrownBy(() -> bench.register(Kernel.builder("test.zero\0x", "SQR").run(task -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"test.zero\\0x\"");
    assertThatThrownBy(() -> bench.register(Kernel.builder("test.zero", "SQR\0x").run(task -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the operation of test.zero")
        .hasMessageContaining("\"SQR\\0x\"");
  }

  @Test
  @DisplayName("JAVA-4: a source that is null is named")
  void nullSource() {
    Operator<NoAttributes> operator =
        Operator.of(
            Workbench.unique("test.null.v"),
            (sources, none) -> OutputSpec.like(sources.getFirst()));
    bench.register(operator);
    Tensor x = bench.inputs.newTensor(Type.F32, 4);
    assertThatThrownBy(() -> operator.create(bench.nodes, x, null))
        .isInstanceOf(NullPointerException.class)
        .hasMessage(operator.name() + ": source 1 is null");
  }
}
