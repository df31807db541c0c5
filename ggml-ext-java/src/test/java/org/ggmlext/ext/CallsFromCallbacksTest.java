package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.ggmlext.Context;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Callbacks that call what is busy with them: an exception, where ggml would end the process. */
@Timeout(value = 100, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CallsFromCallbacksTest {
  private final Workbench bench = new Workbench();
  private final Collection<Throwable> thrown = new ConcurrentLinkedQueue<>();

  @AfterEach
  void close() {
    bench.close();
  }

  private void attempt(List<Runnable> calls) {
    calls.forEach(call -> thrown.add(catchThrowable(call::run)));
  }

  @Test
  @DisplayName(
      "JAVA-2: a scheduler, its backend and its graph are refused to callbacks of planning")
  void schedulerWithinItsAllocation() {
    Tensor x = bench.input(new float[] {2}, 1);
    Tensor inner = bench.inputs.neg(x);
    bench.inputs.allocate(bench.cpu);
    Graph direct = bench.inputs.newGraph(4).expand(inner);
    Graph graph = bench.graph(bench.nodes.sqr(x));
    List<Runnable> calls =
        List.of(
            bench.scheduler::reset,
            () -> bench.scheduler.reserve(graph),
            () -> bench.scheduler.allocate(graph),
            () -> bench.scheduler.compute(graph),
            () -> bench.scheduler.setEvalCallback(null),
            () -> bench.backend.compute(direct),
            () -> bench.backend.threads(1),
            () -> bench.nodes.allocate(bench.cpu));
    bench.register(
        GraphOptimizer.of(Workbench.unique("test.optimize.calls"), nodes -> attempt(calls)));
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.calls"), "SQR")
            .prepare(
                context -> {
                  attempt(calls);
                  return Prepared.NOTHING;
                })
            .run(task -> task.dst().setFloat(0, 0, 0, 0, 7)));
    bench.scheduler.allocate(graph);
    assertThat(thrown)
        .hasSize(2 * calls.size())
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("by a callback"));
    bench.scheduler.compute(graph);
    assertThat(graph.nodes().getLast().getFloats()).containsExactly(7);
    // Afterwards it can.
    bench.backend.compute(direct);
    assertThat(inner.getFloats()).containsExactly(-2);
  }

  @Test
  @DisplayName("JAVA-2: a kernel cannot give memory to what its compute uses, on any thread")
  void memoryWithinACompute() {
    Tensor x = bench.input(new float[] {2}, 1);
    List<Runnable> calls = List.of(() -> bench.inputs.allocate(bench.cpu));
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.gives"), "MUL")
            .run(
                task -> {
                  attempt(calls);
                  try (Context other = Context.forTensors(1)) {
                    // Another one is none of the compute's business.
                    Tensor own = other.newTensor(Type.F32, 1);
                    other.allocate(bench.cpu);
                    if (task.ith() == 0) {
                      task.dst().setFloat(0, 0, 0, 0, own.setFloats(7).getFloats()[0]);
                    }
                  }
                }));
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.gives"), "SQR")
            .execute(
                execution -> {
                  execution.parallel((ith, nth) -> attempt(calls));
                  execution.dst().setFloat(0, 0, 0, 0, execution.src(0).getFloat(0, 0, 0, 0) + 1);
                }));
    assertThat(bench.compute(bench.nodes.sqr(bench.nodes.mul(x, x)))).containsExactly(8);
    assertThat(thrown)
        .hasSize(2 * bench.backend.threads())
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("memory of tensors cannot be given or taken"));
  }

  @Test
  @DisplayName("JAVA-2: who waits for a compute to give memory does not keep its kernels waiting")
  void memoryDuringACompute() throws Exception {
    Tensor x = bench.input(new float[] {2}, 1);
    bench.inputs.newTensor(Type.F32, 1);
    CountDownLatch computing = new CountDownLatch(1);
    CountDownLatch waits = new CountDownLatch(1);
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.reads"), "SQR")
            .run(
                task -> {
                  if (task.ith() == 0) {
                    computing.countDown();
                    waits.await();
                    Thread.sleep(50); // the other one waits by now
                    task.dst().setFloat(0, 0, 0, 0, bench.inputs.tensors().size());
                  }
                }));
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      Future<?> other =
          threads.submit(
              () -> {
                computing.await();
                waits.countDown();
                return bench.inputs.allocate(bench.cpu);
              });
      assertThat(bench.compute(bench.nodes.sqr(x))).containsExactly(2);
      other.get();
    }
  }
}
