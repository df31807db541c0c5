package org.ggmlext.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.Prepared;
import org.ggmlext.ext.TaskBody;
import org.ggmlext.ext.TensorView;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Kernels and rules with one bug each: the kit finds it where it shows, and there only. */
class PlantedBugsTest {
  private final KitBench bench = new KitBench();
  private final Operator<KitBench.Swish> swish = KitBench.swish();

  @AfterEach
  void close() {
    bench.close();
  }

  private Report check(Kernel kernel) {
    Report report = bench.swishCheck(swish, kernel).run();
    assertThat(report.passed()).isFalse();
    assertThatThrownBy(report::requirePassed)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("**failed**");
    return report;
  }

  private static List<String> failedSituations(Report report) {
    return report.rows(Verdict.FAILED).stream().map(Report.Row::situation).distinct().toList();
  }

  private Kernel.Builder kernel() {
    return Kernel.builder(KitBench.unique("kit.swish.bug"), swish);
  }

  private static float swish(float v) {
    return (float) (v / (1 + Math.exp(-1.5 * v)));
  }

  @Test
  @DisplayName("KIT-1: a kernel that ignores strides fails with strided and permuted inputs")
  void ignoresStrides() {
    Report report =
        check(
            kernel()
                .run(
                    task -> {
                      MemorySegment x = task.src(0).data();
                      MemorySegment y = task.dst().data();
                      long count = task.dst().info().elements();
                      for (long i = task.first(count); i < task.end(count); i++) {
                        float v = x.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                        y.setAtIndex(ValueLayout.JAVA_FLOAT, i, swish(v));
                      }
                    }));
    assertThat(failedSituations(report))
        .containsExactlyInAnyOrder("input 0 strided", "input 0 transposed", "input 0 permuted");
    assertThat(report.rows(Verdict.FAILED))
        .allSatisfy(row -> assertThat(row.detail()).contains("elements wrong", "expected"));
  }

  @Test
  @DisplayName("KIT-1: a kernel that writes before it reads fails where the output takes its input")
  void writesBeforeReading() {
    TaskBody zeroFirst =
        task -> {
          if (task.phase() == 0) {
            if (task.ith() == 0) {
              task.dst().data().fill((byte) 0);
            }
            return;
          }
          KitBench.add().run(task);
        };
    Report report =
        RuleCheck.of(
                bench.register(
                    Kernel.builder(KitBench.unique("kit.add.bug"), "ADD")
                        .prepare(context -> Prepared.NOTHING.withPhases(2))
                        .run(zeroFirst)),
                (context, in) -> context.add(in.get(0), in.get(1)))
            .inputs(KitBench::two)
            .shapes(KitBench.FEW)
            .run();
    assertThat(failedSituations(report))
        .contains("input 0 overwritten by the output")
        .allMatch(situation -> situation.endsWith("overwritten by the output"));
  }

  @Test
  @DisplayName("KIT-1: a kernel that keeps state between runs fails when it runs again")
  void keepsState() {
    Report report =
        check(
            kernel()
                .prepare(
                    context -> Prepared.NOTHING.withState(new float[][] {null}).withMaxTasks(1))
                .run(
                    task -> {
                      float[][] cached = task.state(float[][].class);
                      TensorView x = task.src(0);
                      if (cached[0] == null) {
                        cached[0] = new float[(int) x.info().elements()];
                        int[] at = {0};
                        KitBench.forRows(
                            x,
                            0,
                            x.rows(),
                            (i0, i1, i2, i3) ->
                                cached[0][at[0]++] = swish(x.getFloat(i0, i1, i2, i3)));
                      }
                      task.dst().data().copyFrom(MemorySegment.ofArray(cached[0]));
                    }));
    assertThat(failedSituations(report))
        .contains("repeated runs")
        .doesNotContain("plain", "input 0 strided", "one thread");
    assertThat(report.rowsOf("repeated runs"))
        .allSatisfy(row -> assertThat(row.detail()).contains("a run with other values"));
  }

  @Test
  @DisplayName("KIT-1: a kernel that accumulates into its own state fails when it runs again")
  void accumulates() {
    Report report =
        check(
            kernel()
                .prepare(context -> Prepared.NOTHING.withState(new float[1]).withMaxTasks(1))
                .run(
                    task -> {
                      KitBench.swishRows(swish).run(task, 0, task.dst().rows());
                      float[] runs = task.state(float[].class);
                      float last = task.dst().getFloat(0, 0, 0, 0);
                      task.dst().setFloat(0, 0, 0, 0, last + runs[0]++);
                    }));
    assertThat(failedSituations(report))
        .contains("repeated runs", "inputs poisoned between runs")
        .doesNotContain("plain", "input 0 strided");
  }

  @Test
  @DisplayName("KIT-1: a kernel that is wrong for batches fails for those shapes only")
  void wrongBatch() {
    Report report =
        check(
            kernel()
                .run(
                    TaskBody.rows(
                        (task, first, end) -> {
                          TensorView x = task.src(0);
                          KitBench.forRows(
                              x,
                              first,
                              end,
                              (i0, i1, i2, i3) ->
                                  task.dst()
                                      .setFloat(i0, i1, i2, i3, swish(x.getFloat(i0, i1, 0, 0))));
                        })));
    assertThat(report.rows(Verdict.FAILED))
        .isNotEmpty()
        .allSatisfy(row -> assertThat(row.inputs()).isEqualTo("F32 [9, 5, 3, 2]"));
    assertThat(report.rowsOf("plain"))
        .extracting(Report.Row::verdict)
        .containsExactly(Verdict.PASSED, Verdict.PASSED, Verdict.FAILED);
  }

  @Test
  @DisplayName("KIT-1: a kernel with one scratch array for all fails under two schedulers")
  void sharedScratch() {
    float[] scratch = new float[1 << 12];
    Report report =
        check(
            kernel()
                .prepare(context -> Prepared.NOTHING.withMaxTasks(1))
                .run(
                    task -> {
                      TensorView x = task.src(0);
                      int[] at = {0};
                      KitBench.forRows(
                          x,
                          0,
                          x.rows(),
                          (i0, i1, i2, i3) -> scratch[at[0]++] = swish(x.getFloat(i0, i1, i2, i3)));
                      Thread.sleep(2);
                      int count = (int) task.dst().info().elements();
                      task.dst()
                          .data()
                          .copyFrom(MemorySegment.ofArray(Arrays.copyOf(scratch, count)));
                    }));
    assertThat(failedSituations(report)).containsExactly("two schedulers at once");
  }

  @Test
  @DisplayName("KIT-1: a kernel that takes its scratch memory to be zero at the start fails")
  void takesScratchForZero() {
    Report report =
        check(
            kernel()
                .prepare(context -> Prepared.NOTHING.withWorkspace(4).withMaxTasks(1))
                .run(
                    task -> {
                      KitBench.swishRows(swish).run(task, 0, task.dst().rows());
                      float sum = task.workspace().get(ValueLayout.JAVA_FLOAT, 0);
                      float last = task.dst().getFloat(0, 0, 0, 0);
                      task.dst().setFloat(0, 0, 0, 0, last + sum);
                    }));
    assertThat(report.rowsOf("plain"))
        .allMatch(row -> row.verdict() == Verdict.FAILED)
        .allSatisfy(row -> assertThat(row.detail()).contains("NaN"));
  }

  @Test
  @DisplayName(
      "KIT-1: a kernel that finds its scratch memory as it left it fails when it runs again")
  void keepsScratch() {
    Report report =
        check(
            kernel()
                .prepare(
                    context ->
                        Prepared.NOTHING.withWorkspace(4).withMaxTasks(1).withState(new boolean[1]))
                .run(
                    task -> {
                      boolean[] initialised = task.state(boolean[].class);
                      if (!initialised[0]) {
                        initialised[0] = true;
                        task.workspace().set(ValueLayout.JAVA_FLOAT, 0, 1);
                      }
                      float one = task.workspace().get(ValueLayout.JAVA_FLOAT, 0);
                      KitBench.swishRows(swish).run(task, 0, task.dst().rows());
                      float last = task.dst().getFloat(0, 0, 0, 0);
                      task.dst().setFloat(0, 0, 0, 0, last * one);
                    }));
    assertThat(failedSituations(report))
        .contains("repeated runs", "after a cancelled run", "two schedulers at once")
        .doesNotContain("plain", "input 0 strided");
  }

  @Test
  @DisplayName("KIT-1: a kernel whose tasks read what another one writes in the same phase fails")
  void readsWithinAPhase() {
    Report report =
        check(
            kernel()
                .prepare(context -> Prepared.NOTHING.withWorkspace(4))
                .run(
                    task -> {
                      if (task.ith() == task.nth() - 1) {
                        if (task.nth() > 1) {
                          Thread.sleep(1);
                        }
                        task.workspace().set(ValueLayout.JAVA_FLOAT, 0, 1);
                      }
                      float one = task.workspace().get(ValueLayout.JAVA_FLOAT, 0);
                      for (long row = task.firstRow(); row < task.endRow(); row++) {
                        KitBench.swishRows(swish).run(task, row, row + 1);
                        if (row == 0) {
                          float last = task.dst().getFloat(0, 0, 0, 0);
                          task.dst().setFloat(0, 0, 0, 0, last * one);
                        }
                      }
                    }));
    assertThat(failedSituations(report)).contains("plain").doesNotContain("one thread");
  }

  @Test
  @DisplayName("KIT-1: a kernel that leaves part of its output unwritten fails")
  void leavesRest() {
    Report report =
        check(
            kernel()
                .run(
                    TaskBody.rows(
                        (task, first, end) ->
                            KitBench.swishRows(swish)
                                .run(task, first, Math.min(end, task.dst().rows() - 1)))));
    assertThat(report.rowsOf("plain").getFirst().verdict()).isEqualTo(Verdict.FAILED);
    assertThat(report.rowsOf("plain").getFirst().detail()).contains("NaN");
  }

  @Test
  @DisplayName("KIT-1: what a kernel throws is in the row")
  void throwing() {
    Report report =
        check(
            kernel()
                .run(
                    task -> {
                      throw new IllegalStateException("planted");
                    }));
    assertThat(report.rowsOf("plain").getFirst().detail()).contains("planted");
  }

  @Test
  @DisplayName("KIT-1: a wrong rule fails where it fires")
  void wrongRule() {
    Report report =
        RuleCheck.of(bench.register(KitBench.scaleAdd(0.25f)), KitBench.scaleAddGraph())
            .inputs(KitBench::two)
            .shapes(KitBench.FEW)
            .run();
    assertThat(report.rowsOf("plain"))
        .allSatisfy(
            row -> {
              assertThat(row.verdict()).isEqualTo(Verdict.FAILED);
              assertThat(row.detail()).contains("max error 0.250");
            });
    assertThat(report.rowsOf("intermediate 0 marked as output"))
        .allMatch(row -> row.verdict() == Verdict.REFUSED);
  }
}
