package org.ggmlext.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.GraphOptimizer;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.Registration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class VerificationTest {
  private final KitBench bench = new KitBench();
  private final Device cpu = Ggml.load().device(DeviceType.CPU);
  private final Context leaves = Context.forTensors(8);
  private final Context nodes = Context.forGraph(64);
  private final Tensor x = leaves.newTensor(Type.F32, 4);
  private final Tensor y = leaves.newTensor(Type.F32, 4);

  @AfterEach
  void close() {
    nodes.close();
    leaves.close();
    bench.close();
  }

  private Tensor scaleAdd() {
    leaves.allocate(cpu);
    x.setFloats(1, 2, 3, 4);
    y.setFloats(10, 20, 30, 40);
    return nodes.add(nodes.scaleBias(x, 3, 0.5f).name("scaled"), y).name("sum");
  }

  @Test
  @DisplayName("JAVA-8, KIT-1: operators' and optimisers' registrations are refused, with help")
  void computesNothing() {
    Operator<KitBench.Swish> swish = KitBench.swish();
    Registration operator = bench.register(swish);
    Registration optimizer =
        bench.register(GraphOptimizer.of(KitBench.unique("kit.optimizer"), view -> {}));
    Graph graph = nodes.newGraph(16).expand(scaleAdd());
    String help = " is an operator: give its kernel's registration";
    assertRefused(() -> Verification.compare(graph, operator), swish.name() + help);
    assertRefused(() -> RuleCheck.of(operator, (in, x) -> x.getFirst()), swish.name() + help);
    assertRefused(
        () -> OperatorCheck.of(operator, (in, x) -> x.getFirst(), x -> x.getFirst().toArray()),
        swish.name() + help);
    assertRefused(operator::stats, swish.name() + " is an operator: ask its kernel's registration");
    String nothing =
        " is a graph optimiser, which computes nothing: give the registration of a kernel or rule";
    assertRefused(() -> Verification.compare(graph, optimizer), optimizer.name() + nothing);
    assertRefused(
        () -> RuleCheck.of(optimizer, (in, x) -> x.getFirst()), optimizer.name() + nothing);
  }

  private static void assertRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  @DisplayName("JAVA-8: a right rule fired, and changes nothing")
  void right() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    Graph graph = nodes.newGraph(16).expand(scaleAdd());
    Verification verification = Verification.compare(graph, rule);
    assertThat(verification.fired()).isTrue();
    assertThat(verification.steps()).isEqualTo(1);
    assertThat(verification.fusedNodes()).isEqualTo(2);
    assertThat(verification.repeatable()).isTrue();
    assertThat(verification.maxAbsolute()).isLessThan(1e-5);
    assertThat(rule.isEnabled()).isTrue();
    assertThat(verification.toString())
        .contains(rule.name() + " computed 1 steps, 2 nodes", "sum F32 [4]", "A and A are equal");
  }

  @Test
  @DisplayName("JAVA-8: a wrong rule's largest error, absolute and relative, per output")
  void wrong() {
    Registration rule = bench.register(KitBench.scaleAdd(0.5f));
    Tensor sum = scaleAdd().asOutput();
    Tensor untouched = nodes.sqr(y).name("untouched").asOutput();
    Graph graph = nodes.newGraph(16).expand(sum, untouched);
    Verification verification = Verification.compare(graph, rule);
    assertThat(verification.fired()).isTrue();
    assertThat(verification.outputs())
        .extracting(Verification.Output::name)
        .containsExactly("sum F32 [4]", "untouched F32 [4]");
    Difference difference = verification.outputs().getFirst().difference();
    assertThat(difference.maxAbsolute()).isCloseTo(0.5, within(1e-6));
    // Of 1 * 3 + 0.5 + 10 = 13.5 and 14.
    assertThat(difference.maxRelative()).isCloseTo(0.5 / 14, within(1e-6));
    assertThat(verification.outputs().get(1).difference().maxAbsolute()).isZero();
    assertThat(verification.repeatable()).isTrue();
  }

  @Test
  @DisplayName("JAVA-8: a rule that is refused did not fire, and the reason is told")
  void refused() {
    Registration rule = bench.register(KitBench.scaleAdd(0.5f));
    Tensor sum = scaleAdd();
    Tensor twice = nodes.sub(sum, nodes.tensors().getFirst());
    Verification verification = Verification.compare(nodes.newGraph(16).expand(twice), rule);
    assertThat(verification.fired()).isFalse();
    assertThat(verification.maxAbsolute()).isZero();
    assertThat(verification.refusals())
        .singleElement()
        .asString()
        .contains("FUSE-2", "scaled", "SCALE");
    assertThat(verification.toString()).contains("did not fire", "refused at");
  }

  @Test
  @DisplayName("JAVA-8: inputs that only a scheduler gives memory are written before each run")
  void schedulerInputs() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    // As outputs too, so that the sum does not take the memory of one: such a group is refused.
    Tensor a = nodes.newTensor(Type.F32, 4).asInput().asOutput();
    Tensor b = nodes.newTensor(Type.F32, 4).asInput().asOutput();
    Graph graph = nodes.newGraph(16).expand(nodes.add(nodes.scale(a, 2), b));
    Verification verification =
        Verification.compare(
            graph,
            rule,
            List.of(cpu),
            () -> {
              a.setFloats(1, 2, 3, 4);
              b.setFloats(4, 3, 2, 1);
            });
    assertThat(verification.fired()).isTrue();
    assertThat(verification.repeatable()).isTrue();
    assertThat(verification.maxAbsolute()).isLessThan(1e-5);
  }

  @Test
  @DisplayName("JAVA-8: a graph that changes its own input is not repeatable, and A and A tell")
  void notRepeatable() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    Tensor sum = scaleAdd();
    Tensor grows = nodes.cpy(sum, x);
    Verification verification = Verification.compare(nodes.newGraph(16).expand(grows), rule);
    assertThat(verification.repeatable()).isFalse();
    assertThat(verification.toString()).contains("DIFFER");
  }

  @Test
  @DisplayName("JAVA-8: a graph that has memory is refused, and the switch stays as it was")
  void allocated() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    Graph graph = nodes.newGraph(16).expand(scaleAdd());
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      scheduler.allocate(graph);
      assertThatThrownBy(() -> Verification.compare(graph, rule))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("scaled")
          .hasMessageContaining("reset");
      scheduler.reset();
      rule.setEnabled(false);
      assertThat(Verification.compare(graph, rule).fired()).isTrue();
      assertThat(rule.isEnabled()).isFalse();
    }
  }
}
