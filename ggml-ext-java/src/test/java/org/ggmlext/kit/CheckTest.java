package org.ggmlext.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.Registration;
import org.ggmlext.ext.Support;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CheckTest {
  private final KitBench bench = new KitBench();

  @AfterEach
  void close() {
    bench.close();
  }

  @Test
  @DisplayName("KIT-1: a right operator passes in every situation over the usual shapes")
  void rightOperator() {
    Operator<KitBench.Swish> swish = KitBench.swish();
    bench.register(swish);
    Registration kernel =
        bench.register(
            Kernel.rows(KitBench.unique("kit.swish.java"), swish, KitBench.swishRows(swish)));
    Report report =
        OperatorCheck.of(
                kernel,
                (context, in) -> swish.create(context, new KitBench.Swish(1), in.get(0)),
                in -> {
                  double[] x = in.get(0).toArray();
                  for (int i = 0; i < x.length; i++) {
                    x[i] = x[i] / (1 + Math.exp(-x[i]));
                  }
                  return x;
                })
            .inputs(KitBench::one)
            .tolerance(1e-6, 1e-6)
            .run()
            .requirePassed();
    for (String situation :
        List.of(
            "plain",
            "input 0 strided",
            "input 0 transposed",
            "input 0 permuted",
            "input 0 with an offset",
            "input 0 overwritten by the output",
            "one thread",
            "repeated runs",
            "inputs poisoned between runs",
            "evaluation callback",
            "without a scheduler",
            "after a cancelled run",
            "two schedulers at once")) {
      assertThat(report.rowsOf(situation))
          .as(situation)
          .hasSize(9)
          .anyMatch(row -> row.verdict() == Verdict.PASSED);
    }
    assertThat(report.rows(Verdict.REFUSED)).isEmpty();
    assertThat(report.toString())
        .contains("## " + kernel.name(), "seed 42", "| plain | F32 [64, 8] | passed | max error");
  }

  @Test
  @DisplayName("KIT-1: a right override passes, with each input overwritten by the output")
  void rightOverride() {
    Registration kernel =
        bench.register(Kernel.builder(KitBench.unique("kit.add"), "ADD").run(KitBench.add()));
    Report report =
        RuleCheck.of(kernel, (context, in) -> context.add(in.get(0), in.get(1)))
            .inputs(KitBench::two)
            .shapes(KitBench.FEW)
            .tolerance(0, 0)
            .run()
            .requirePassed();
    for (String situation :
        List.of("input 0 overwritten by the output", "input 1 overwritten by the output")) {
      assertThat(report.rowsOf(situation))
          .hasSize(3)
          .allMatch(row -> row.verdict() == Verdict.PASSED);
    }
    assertThat(report.rowsOf("input 0 overwritten by the output"))
        .noneMatch(row -> row.detail().contains("other memory"));
  }

  @Test
  @DisplayName("KIT-1: a right SCALE -> ADD rule passes, and what it may not fuse is refused")
  void rightRule() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    Report report =
        RuleCheck.of(rule, KitBench.scaleAddGraph())
            .inputs(KitBench::two)
            .shapes(KitBench.FEW)
            .run()
            .requirePassed();
    assertThat(report.rowsOf("plain")).allMatch(row -> row.verdict() == Verdict.PASSED);
    for (String situation :
        List.of("intermediate 0 with a second consumer", "intermediate 0 marked as output")) {
      assertThat(report.rowsOf(situation))
          .hasSize(3)
          .allSatisfy(
              row -> {
                assertThat(row.verdict()).isEqualTo(Verdict.REFUSED);
                assertThat(row.detail()).contains("FUSE-2");
              });
    }
    assertThat(report.rowsOf("input 0 transposed"))
        .filteredOn(row -> row.verdict() != Verdict.NOT_APPLICABLE)
        .isNotEmpty()
        .allSatisfy(row -> assertThat(row.detail()).contains("not built", "contiguous"));
  }

  @Test
  @DisplayName("KIT-1: types are swept too, and a kernel that refuses one says why")
  void types() {
    Registration kernel =
        bench.register(
            Kernel.builder(KitBench.unique("kit.add"), "ADD")
                .supports(node -> Support.when(node.dst().is(Type.F32), "F32 wanted"))
                .run(KitBench.add()));
    Report report =
        RuleCheck.of(kernel, (context, in) -> context.add(in.get(0), in.get(1)))
            .inputs(KitBench::two)
            .inputs(s -> List.of(Input.of(Type.F16, s), Input.of(Type.F16, s)))
            .shapes(Shape.of(8, 3))
            .run()
            .requirePassed();
    assertThat(report.rowsOf("plain"))
        .extracting(Report.Row::verdict)
        .containsExactly(Verdict.PASSED, Verdict.REFUSED);
    assertThat(report.rowsOf("plain").get(1).detail()).contains("F32 wanted");
  }

  @Test
  @DisplayName("KIT-1: a kernel that took no case does not pass")
  void nothingTaken() {
    Registration kernel =
        bench.register(
            Kernel.builder(KitBench.unique("kit.add"), "ADD")
                .supports(node -> Support.no("never"))
                .run(KitBench.add()));
    Report report =
        RuleCheck.of(kernel, (context, in) -> context.add(in.get(0), in.get(1)))
            .inputs(KitBench::two)
            .shapes(Shape.of(8))
            .run();
    assertThat(report.rows(Verdict.FAILED)).isEmpty();
    assertThatThrownBy(report::requirePassed)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("took none");
  }

  @Test
  @DisplayName("KIT-1: misuse is refused with what is expected")
  void misuse() {
    Registration kernel =
        bench.register(Kernel.builder(KitBench.unique("kit.add"), "ADD").run(KitBench.add()));
    RuleCheck check = RuleCheck.of(kernel, (context, in) -> context.add(in.get(0), in.get(1)));
    assertThatThrownBy(check::run)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("inputs");
    assertThatThrownBy(check::shapes).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> check.threads(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> check.tolerance(-1, 0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Input.of(Type.Q4_0, 32)).hasMessageContaining("Q4_0");
    kernel.setEnabled(false);
    check.inputs(KitBench::two);
    assertThatThrownBy(check::run).hasMessageContaining("switched off");
  }

  @Test
  @DisplayName("KIT-1: what the reference throws is not taken for a verdict")
  void throwingReference() {
    Operator<KitBench.Swish> swish = KitBench.swish();
    bench.register(swish);
    Registration kernel =
        bench.register(
            Kernel.rows(KitBench.unique("kit.swish.java"), swish, KitBench.swishRows(swish)));
    IllegalArgumentException thrown = new IllegalArgumentException("no reference");
    OperatorCheck check =
        OperatorCheck.of(
                kernel,
                (context, in) -> swish.create(context, new KitBench.Swish(1), in.get(0)),
                in -> {
                  throw thrown;
                })
            .inputs(KitBench::one);
    assertThatThrownBy(check::run).isSameAs(thrown);
  }
}
