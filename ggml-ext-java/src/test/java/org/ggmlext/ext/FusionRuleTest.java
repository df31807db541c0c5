package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class FusionRuleTest {
  private static final Pattern MUL_ADD =
      Pattern.start("MUL")
          .capture("a", 0)
          .capture("b", 1)
          .then("ADD")
          .captureOther("c")
          .where(node -> node.dst().is(Type.F32), "an F32 sum");

  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  record Captures(Capture a, Capture b, Capture c) {}

  /** Fuses a * b + c and adds 1000, so that a test sees whether it ran. */
  private static FusionRule mulAdd(String name) {
    return FusionRule.builder(name, MUL_ADD)
        .prepare(
            context ->
                Prepared.NOTHING.withState(
                    new Captures(context.capture("a"), context.capture("b"), context.capture("c"))))
        .rows(
            (task, first, end) -> {
              Captures at = task.state(Captures.class);
              TensorView a = task.tensor(at.a());
              TensorView b = task.tensor(at.b());
              TensorView c = task.tensor(at.c());
              for (long row = first; row < end; row++) {
                for (long i = 0; i < task.dst().ne(0); i++) {
                  float product = a.getFloat(i, row, 0, 0) * b.getFloat(i, row, 0, 0);
                  task.dst().setFloat(i, row, 0, 0, product + c.getFloat(i, row, 0, 0) + 1000);
                }
              }
            });
  }

  private Tensor in(float... values) {
    return bench.input(values, values.length);
  }

  @Test
  @DisplayName("FUSE-1, JAVA-3: a pattern's nodes become one step, with captures in either order")
  void fuses() {
    String name = Workbench.unique("test.mul_add");
    Registration rule = bench.register(mulAdd(name));
    Tensor product = bench.nodes.mul(in(1, 2), in(3, 4));
    assertThat(bench.compute(bench.nodes.add(product, in(5, 6)))).containsExactly(1008, 1014);
    Tensor other = bench.nodes.mul(in(1, 2), in(3, 4));
    assertThat(bench.compute(bench.nodes.add(in(5, 6), other))).containsExactly(1008, 1014);
    Plan.Step step = bench.ext.plans(bench.backend).getFirst().stepsOf(name).getFirst();
    assertThat(step.count()).isEqualTo(2);
    assertThat(step.fused()).isTrue();
    assertThat(rule.stats().executed()).isEqualTo(2);
  }

  @Test
  @DisplayName("FUSE-1: a pattern that captures two tensors under one name is refused")
  void capturedTwice() {
    String message = "\"a\" is captured already";
    assertThatThrownBy(() -> Pattern.start("MUL").capture("a", 0).capture("a", 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> MUL_ADD.captureOutput("a"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> MUL_ADD.then("ADD").captureOther("a"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
  }

  @Test
  @DisplayName("FUSE-1, JAVA-7: a function in an operation's place is told from another operation")
  void functionForAnOperation() {
    String name = Workbench.unique("test.mul_silu");
    bench.register(
        FusionRule.builder(name, Pattern.start("MUL").then("SILU")).rows((task, first, end) -> {}));
    Tensor product = bench.nodes.mul(in(1, 2), in(3, 4));
    assertThat(bench.compute(bench.nodes.silu(product))).hasSize(2);
    assertThat(bench.ext.plans(bench.backend).getFirst().refusals())
        .extracting(Plan.Refusal::kernel, Plan.Refusal::reason)
        .contains(
            tuple(
                name, "\"SILU\" is a function of UNARY: expect that, and the function in where()"));
    assertThatThrownBy(
            () ->
                bench.register(
                    FusionRule.builder(name + "2", Pattern.start("SILU").then("MUL"))
                        .rows((task, first, end) -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"SILU\" is neither an operation of this ggml nor")
        .hasMessageContaining("activations are functions of UNARY");
  }

  @Test
  @DisplayName("FUSE-2: an intermediate with a second consumer is not fused; the plan says why")
  void secondConsumer() {
    String name = Workbench.unique("test.mul_add");
    Registration rule = bench.register(mulAdd(name));
    Tensor product = bench.nodes.mul(in(1, 2), in(3, 4));
    Tensor sum = bench.nodes.add(product, in(5, 6));
    Tensor both = bench.nodes.sub(sum, product);
    assertThat(bench.compute(both)).containsExactly(5, 6);
    assertThat(rule.stats().executed()).isZero();
    assertThat(rule.stats().refused()).isPositive();
    assertThat(bench.ext.plans(bench.backend).getFirst().refusals())
        .anySatisfy(
            refusal -> {
              assertThat(refusal.kernel()).isEqualTo(name);
              assertThat(refusal.reason()).contains("FUSE-2");
            });
  }

  @Test
  @DisplayName("FUSE-1: the off switch of a rule leaves the single nodes")
  void offSwitch() {
    Registration rule = bench.register(mulAdd(Workbench.unique("test.mul_add")));
    rule.setEnabled(false);
    Tensor sum = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    assertThat(bench.compute(sum)).containsExactly(8, 14);
    rule.setEnabled(true);
    Tensor again = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    assertThat(bench.compute(again)).containsExactly(1008, 1014);
  }

  @Test
  @DisplayName("FUSE-3: an optimiser's delay brings the nodes of a pattern together")
  void delay() {
    Registration rule = bench.register(mulAdd(Workbench.unique("test.mul_add")));
    AtomicBoolean refusedSeen = new AtomicBoolean();
    bench.register(
        GraphOptimizer.of(
            Workbench.unique("test.together"),
            graph -> {
              for (int i = 0; i + 2 < graph.size(); i++) {
                if (graph.node(i).op().equals("MUL") && graph.node(i + 1).op().equals("SQR")) {
                  // Not behind its own reader, but behind the independent node.
                  refusedSeen.set(graph.delay(i, 1, graph.size()) instanceof Support.No);
                  assertThat(graph.delay(i, 1, i + 2)).isInstanceOf(Support.Yes.class);
                  assertThat(graph.node(i).op()).isEqualTo("SQR");
                  assertThat(graph.useCount(i + 1)).isEqualTo(1);
                  assertThat(graph.find(graph.node(i + 1).dst())).isEqualTo(i + 1);
                  return;
                }
              }
            }));
    Tensor product = bench.nodes.mul(in(1, 2), in(3, 4));
    Tensor square = bench.nodes.sqr(in(2, 3));
    Tensor sum = bench.nodes.add(product, square);
    assertThat(bench.compute(sum)).containsExactly(1007, 1017);
    assertThat(refusedSeen).isTrue();
    assertThat(rule.stats().executed()).isEqualTo(1);
  }

  @Test
  @DisplayName("JAVA-4: what a matcher throws is the cause, and counted")
  void throwingMatcher() {
    IllegalStateException thrown = new IllegalStateException("no");
    Registration matcher =
        bench.register(
            FusionRule.builder(
                    Workbench.unique("test.throws"),
                    "MUL",
                    nodes -> {
                      throw thrown;
                    })
                .run(task -> {}));
    Tensor sum = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    assertThatThrownBy(() -> bench.compute(sum))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(matcher.name())
        .cause()
        .isSameAs(thrown);
    assertThat(matcher.stats().failed()).isPositive();
  }

  @Test
  @DisplayName(
      "JAVA-4: what an optimiser throws is the cause, and the next graph computes without it")
  void throwingOptimizer() {
    StackOverflowError thrown = new StackOverflowError();
    Registration optimizer =
        bench.register(
            GraphOptimizer.of(
                Workbench.unique("test.throws"),
                graph -> {
                  throw thrown;
                }));
    Tensor sum = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    assertThatThrownBy(() -> bench.compute(sum))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(optimizer.name())
        .cause()
        .isSameAs(thrown);
    assertThat(optimizer.stats().failed()).isPositive();
    optimizer.setEnabled(false);
    Tensor again = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    assertThat(bench.compute(again)).containsExactly(8, 14);
  }

  @Test
  @DisplayName("FUSE-5: direct compute runs single operations, with the same result")
  void direct() {
    Registration rule = bench.register(mulAdd(Workbench.unique("test.mul_add")));
    Tensor sum = bench.nodes.add(bench.nodes.mul(in(1, 2), in(3, 4)), in(5, 6));
    Graph graph = bench.graph(sum);
    bench.nodes.allocate(bench.cpu);
    bench.backend.compute(graph);
    assertThat(sum.getFloats()).containsExactly(8, 14);
    assertThat(rule.stats().executed()).isZero();
  }

  /** Says that a node of these sources is left to single kernels, and why. */
  private void assertNoOther(String reason, float expected, UnaryOperator<Tensor[]> sources) {
    Operator<NoAttributes> sum =
        Operator.of(
            Workbench.unique("test.sum.v"), (tensors, none) -> OutputSpec.like(tensors.getFirst()));
    bench.register(sum);
    bench.register(
        Kernel.rows(
            sum.name() + ".kernel",
            sum,
            (task, first, end) -> {
              float value = 0;
              for (int i = 0; i < task.node().info().sourceCount(); i++) {
                value += task.src(i).getFloat(0, 0, 0, 0);
              }
              task.dst().setFloat(0, 0, 0, 0, value);
            }));
    String name = Workbench.unique("test.other");
    Pattern pattern = Pattern.start("SQR").then(sum.name()).captureOther("other");
    Registration rule =
        bench.register(
            FusionRule.builder(name, pattern)
                .run(task -> task.dst().setFloat(0, 0, 0, 0, Float.NaN)));
    Tensor x = in(3);
    Tensor square = bench.nodes.sqr(x);
    Tensor output = sum.create(bench.nodes, sources.apply(new Tensor[] {x, square}));
    assertThat(bench.compute(output)).containsExactly(expected);
    assertThat(rule.stats().executed()).isZero();
    assertThat(bench.ext.plans(bench.backend).getFirst().refusals())
        .anySatisfy(
            refusal -> {
              assertThat(refusal.kernel()).isEqualTo(name);
              assertThat(refusal.reason()).contains("\"other\"", reason);
            });
  }

  @Test
  @DisplayName("JAVA-3: where nothing is the one source beside the chain, a pattern does not match")
  void noOther() {
    assertNoOther("not 3", 3 + 3 + 9, x -> new Tensor[] {x[0], x[0], x[1]});
    assertNoOther("not 3", 9 + 3 + 3, x -> new Tensor[] {x[1], x[0], x[0]});
    assertNoOther("not 1", 9, x -> new Tensor[] {x[1]});
    assertNoOther("both", 9 + 9, x -> new Tensor[] {x[1], x[1]});
  }

  @Test
  @DisplayName("JAVA-3: only an output that is asked for is one")
  void captureOfOutput() {
    assertThat(Capture.output(2).isOutput()).isTrue();
    assertThat(new Capture(2, 0).isOutput()).isFalse();
    assertThatThrownBy(() -> new Capture(2, -1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new Capture(-1, 0)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("JAVA-3: a pattern refuses what can never be right")
  void badPattern() {
    assertThatThrownBy(() -> Pattern.start("MUL").captureOther("x"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Pattern.start("MUL").capture("x", -1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Match.nodes(0)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("JAVA-3: nulls are refused where they are given, by name")
  void nulls() {
    Pattern pattern = Pattern.start("MUL").then("ADD");
    assertNamedNull("condition", () -> pattern.where(null, "x"));
    assertNamedNull("reason", () -> pattern.where(node -> true, null));
    assertNamedNull("name", () -> pattern.capture(null, 0));
    assertNamedNull("name", () -> pattern.captureOther(null));
    assertNamedNull("name", () -> pattern.captureOutput(null));
    assertNamedNull("rows", () -> FusionRule.builder("test.null", pattern).rows(null));
    assertNamedNull("body", () -> FusionRule.builder("test.null", pattern).run(null));
    assertNamedNull("value", () -> Kernel.builder("test.null", "MUL").prepare(null));
    assertNamedNull("value", () -> Kernel.builder("test.null", "MUL").destroy(null));
  }

  private static void assertNamedNull(String name, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(NullPointerException.class).hasMessage(name);
  }
}
