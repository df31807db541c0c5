package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class KernelTest {
  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  /** Computes a + b + extra, so that a test sees who computed. */
  private static TaskBody addPlus(float extra) {
    return TaskBody.rows(
        (task, first, end) -> {
          for (long row = first; row < end; row++) {
            for (long i = 0; i < task.dst().ne(0); i++) {
              float sum = task.src(0).getFloat(i, row, 0, 0) + task.src(1).getFloat(i, row, 0, 0);
              task.dst().setFloat(i, row, 0, 0, sum + extra);
            }
          }
        });
  }

  private float[] onePlusTwo() {
    return bench.compute(
        bench.nodes.add(bench.input(new float[] {1, 1}, 2), bench.input(new float[] {2, 2}, 2)));
  }

  @Test
  @DisplayName("JAVA-3: getFloat and setFloat of a tensor that is not F32 are refused by type")
  void floatsOfOtherTypes() {
    List<@Nullable Throwable> thrown = new ArrayList<>();
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.f16"), "SQR")
            .execute(
                execution -> {
                  thrown.add(catchThrowable(() -> execution.src(0).getFloat(0, 0, 0, 0)));
                  thrown.add(catchThrowable(() -> execution.dst().setFloat(0, 0, 0, 0, 1)));
                }));
    Tensor x = bench.inputs.newTensor(Type.F16, 4, 2).name("halves");
    bench.inputs.allocate(bench.cpu);
    bench.scheduler.compute(bench.graph(bench.nodes.sqr(x).name("squares")));
    String message =
        "getFloat and setFloat are for tensors of type F32, not \"%s\" F16 [4, 2]: use data()";
    assertThat(thrown)
        .allSatisfy(t -> assertThat(t).isInstanceOf(IllegalArgumentException.class))
        .extracting(Throwable::getMessage)
        .containsExactly(message.formatted("halves"), message.formatted("squares"));
  }

  @Test
  @DisplayName(
      "KERNEL-1: an override computes a built-in op, and the higher priority is asked first")
  void override() {
    assertThat(onePlusTwo()).containsExactly(3, 3);
    bench.register(Kernel.builder(Workbench.unique("test.add"), "ADD").run(addPlus(100)));
    assertThat(onePlusTwo()).containsExactly(103, 103);
    bench.register(
        Kernel.builder(Workbench.unique("test.add"), "ADD").priority(1).run(addPlus(200)));
    assertThat(onePlusTwo()).containsExactly(203, 203);
    bench.register(
        Kernel.builder(Workbench.unique("test.add"), "ADD").priority(-1).run(addPlus(300)));
    assertThat(onePlusTwo()).containsExactly(203, 203);
  }

  @Test
  @DisplayName(
      "KERNEL-1: supports and preferred decide by metadata; a refusal leaves the native kernel")
  void supportsAndPreferred() {
    bench.register(
        Kernel.builder(Workbench.unique("test.add.wide"), "ADD")
            .supports(node -> Support.when(node.dst().ne(0) >= 4, "rows of at least 4"))
            .preferred(node -> Support.when(node.dst().ne(1) == 1, "a single row"))
            .run(addPlus(100)));
    assertThat(onePlusTwo()).containsExactly(3, 3);
    Tensor row = bench.input(new float[] {1, 2, 3, 4}, 4);
    assertThat(bench.compute(bench.nodes.add(row, row))).containsExactly(102, 104, 106, 108);
    Tensor rows = bench.input(new float[] {1, 2, 3, 4, 1, 2, 3, 4}, 4, 2);
    assertThat(bench.compute(bench.nodes.add(rows, rows))).startsWith(2, 4, 6, 8);
  }

  @Test
  @DisplayName("JAVA-3: a node of UNARY or GLU names its function, by which a kernel chooses")
  void function() {
    List<@Nullable String> seen = new ArrayList<>();
    for (String op : List.of("UNARY", "GLU", "ADD")) {
      bench.register(
          Kernel.builder(Workbench.unique("test.function"), op)
              .supports(
                  node -> {
                    seen.add(node.function());
                    return Support.when("SILU".equals(node.function()), "it is no SILU");
                  })
              .run(TaskBody.rows((task, first, end) -> task.dst().setFloat(0, first, 0, 0, 42))));
    }
    Tensor x = bench.input(new float[] {1, 1}, 2);

    assertThat(bench.compute(bench.nodes.silu(x))[0]).isEqualTo(42);
    assertThat(seen).isNotEmpty().containsOnly("SILU");
    assertThat(bench.compute(bench.nodes.relu(x))).containsExactly(1, 1);
    assertThat(seen).last().isEqualTo("RELU");
    assertThat(bench.compute(bench.nodes.swiglu(x))).hasSize(1);
    assertThat(seen).last().isEqualTo("SWIGLU");
    assertThat(bench.compute(bench.nodes.add(x, x))).containsExactly(2, 2);
    assertThat(seen).last().isNull();
  }

  @Test
  @DisplayName("JAVA-7: the plan names each node's kernel, and each refusal's reason")
  void plan() {
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.add.plan"), "ADD")
                .supports(node -> Support.when(node.dst().ne(0) == 2, "rows of exactly 2"))
                .run(addPlus(100)));
    Tensor two = bench.input(new float[] {1, 2}, 2);
    Tensor four = bench.input(new float[] {1, 2, 3, 4}, 4);
    Tensor a = bench.nodes.add(two, two).name("taken").asOutput();
    Tensor b = bench.nodes.add(four, four).name("refused").asOutput();
    bench.scheduler.compute(bench.graph(a, b));
    Plan plan = bench.ext.plans(bench.backend).getFirst();
    assertThat(plan.stepsOf(kernel.name())).hasSize(1);
    Plan.Step step = plan.stepsOf(kernel.name()).getFirst();
    assertThat(plan.nodes().get(step.first()).name()).isEqualTo("taken");
    assertThat(plan.refusals())
        .anySatisfy(
            refusal -> {
              assertThat(refusal.kernel()).isEqualTo(kernel.name());
              assertThat(refusal.reason()).contains("rows of exactly 2");
              assertThat(plan.nodes().get(refusal.node()).name()).isEqualTo("refused");
            });
    assertThat(plan.toString()).contains(kernel.name(), "ADD", "rows of exactly 2");
    KernelStats stats = kernel.stats();
    assertThat(stats.planned()).isEqualTo(1);
    assertThat(stats.executed()).isEqualTo(1);
    assertThat(stats.supported()).isPositive();
    assertThat(stats.unsupported()).isPositive();
    assertThat(bench.ext.stats(bench.backend).computed()).isEqualTo(1);
  }

  @Test
  @DisplayName("KERNEL-1: a disabled kernel leaves its nodes to others until it is enabled again")
  void disabled() {
    Registration kernel =
        bench.register(Kernel.builder(Workbench.unique("test.add"), "ADD").run(addPlus(100)));
    kernel.setEnabled(false);
    assertThat(onePlusTwo()).containsExactly(3, 3);
    kernel.setEnabled(true);
    assertThat(onePlusTwo()).containsExactly(103, 103);
  }

  @Test
  @DisplayName("KERNEL-1: an unknown op and a taken name are refused; what has the name stays")
  void refusedRegistrations() {
    assertThatThrownBy(
            () ->
                bench.register(Kernel.builder(Workbench.unique("test.x"), "NO_SUCH").run(t -> {})))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("NO_SUCH");
    String name = Workbench.unique("test.add");
    bench.register(Kernel.builder(name, "ADD").run(addPlus(100)));
    assertThatThrownBy(() -> bench.register(Kernel.builder(name, "ADD").run(addPlus(200))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(name);
    assertThat(onePlusTwo()).containsExactly(103, 103);
  }

  @Test
  @DisplayName("KERNEL-3, KERNEL-4, JAVA-6: state, scratch memory and phases reach all tasks")
  void prepared() {
    AtomicInteger destroyed = new AtomicInteger();
    record State(String name) {}
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.phases"), "MUL")
            .prepare(
                context ->
                    Prepared.NOTHING
                        .withState(new State(context.dst().name()))
                        .withWorkspace(context.dst().nbytes())
                        .withPhases(2))
            .destroy(state -> destroyed.incrementAndGet())
            .run(
                task -> {
                  assertThat(task.state(State.class).name()).isEqualTo("product");
                  MemorySegment scratch = task.workspace();
                  assertThat(scratch.byteSize()).isEqualTo(task.dst().info().nbytes());
                  assertThat(scratch.address() % 128).isZero();
                  MemorySegment from = task.phase() == 0 ? task.src(0).data() : scratch;
                  MemorySegment to = task.phase() == 0 ? scratch : task.dst().data();
                  long n = task.dst().info().elements();
                  // Each task reads what another one wrote in the phase before.
                  long shift = task.phase() == 0 ? 0 : n / 2;
                  for (long i = task.first(n); i < task.end(n); i++) {
                    long source = (i + shift) % n;
                    to.setAtIndex(
                        ValueLayout.JAVA_FLOAT, i, from.getAtIndex(ValueLayout.JAVA_FLOAT, source));
                  }
                }));
    float[] x = Workbench.values(1000);
    Tensor input = bench.input(x, 1000);
    Tensor product = bench.nodes.mul(input, input).name("product");
    for (int run = 0; run < 20; run++) {
      float[] out = bench.compute(product);
      for (int i = 0; i < 1000; i++) {
        assertThat(out[i]).isEqualTo(x[(i + 500) % 1000]);
      }
    }
    bench.scheduler.close();
    bench.backend.close();
    assertThat(destroyed.get()).isPositive();
  }

  @Test
  @DisplayName(
      "KERNEL-4: scratch memory that is not there is an exception, and the next graph computes")
  void noMemory() {
    String name = Workbench.unique("test.sqr.huge");
    bench.register(
        Kernel.builder(name, "SQR")
            .supports(node -> Support.when(node.dst().ne(0) == 8, "another length"))
            .prepare(context -> Prepared.NOTHING.withWorkspace(1L << 47))
            .rows((task, first, end) -> {}));
    for (int length : new int[] {1, 4, 20}) {
      Tensor y = bench.input(Workbench.values(8), 8);
      for (int i = 0; i < length; i++) {
        y = bench.nodes.sqr(y);
      }
      Tensor last = y;
      assertThatThrownBy(() -> bench.compute(last))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(
              "KERNEL-4: no memory for %d bytes of workspace of kernel %s", 1L << 47, name);
      Tensor x = bench.input(new float[] {3}, 1);
      assertThat(bench.compute(bench.nodes.sqr(x))).containsExactly(9);
    }
  }

  @Test
  @DisplayName("JAVA-6: all of the backend's threads take part, each row is computed once")
  void threads() {
    int threads = bench.backend.threads();
    ConcurrentHashMap<Thread, Boolean> seen = new ConcurrentHashMap<>();
    AtomicReference<ClassLoader> loader = new AtomicReference<>();
    int rows = 101;
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.rows"), "MUL")
            .rows(
                (task, first, end) -> {
                  seen.put(Thread.currentThread(), true);
                  loader.set(Thread.currentThread().getContextClassLoader());
                  assertThat(task.nth()).isEqualTo(threads);
                  for (long row = first; row < end; row++) {
                    task.dst().setFloat(0, row, 0, 0, task.src(0).getFloat(0, row, 0, 0) + 1);
                  }
                }));
    Tensor input = bench.input(Workbench.values(rows), 1, rows);
    float[] out = bench.compute(bench.nodes.mul(input, input));
    for (int i = 0; i < rows; i++) {
      assertThat(out[i]).isEqualTo(Workbench.values(rows)[i] + 1);
    }
    assertThat(seen).hasSize(threads);
    assertThat(loader.get()).isNotNull();
  }

  @Test
  @DisplayName("SERV-2, JAVA-6: a kernel in whole form runs a task on the backend's threads")
  void wholeForm() {
    AtomicInteger calls = new AtomicInteger();
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.whole"), "MUL")
            .execute(
                execution -> {
                  calls.incrementAndGet();
                  MemorySegment x = execution.src(0).data();
                  MemorySegment out = execution.dst().data();
                  long n = execution.dst().info().elements();
                  execution.parallel(
                      (ith, nth) -> {
                        for (long i = n * ith / nth; i < n * (ith + 1) / nth; i++) {
                          float v = x.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                          out.setAtIndex(ValueLayout.JAVA_FLOAT, i, 3 * v);
                        }
                      });
                }));
    float[] x = Workbench.values(100);
    Tensor input = bench.input(x, 100);
    float[] out = bench.compute(bench.nodes.mul(input, input));
    assertThat(calls).hasValue(1);
    for (int i = 0; i < 100; i++) {
      assertThat(out[i]).isEqualTo(3 * x[i]);
    }
  }

  @Test
  @DisplayName("SERV-2: the parallel service is refused on other threads, and after the call")
  void parallelElsewhere() {
    AtomicReference<Execution> kept = new AtomicReference<>();
    AtomicReference<@Nullable Throwable> elsewhere = new AtomicReference<>();
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.elsewhere"), "MUL")
            .execute(
                execution -> {
                  kept.set(execution);
                  Thread thread =
                      Thread.ofPlatform()
                          .name("elsewhere")
                          .start(
                              () ->
                                  elsewhere.set(
                                      catchThrowable(() -> execution.parallel((ith, nth) -> {}))));
                  thread.join();
                }));
    Tensor input = bench.input(Workbench.values(10), 10);
    bench.compute(bench.nodes.mul(input, input));
    assertThat(elsewhere.get())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("elsewhere")
        .hasMessageContaining("on which the kernel was called");
    bench.close(); // the backend is gone
    assertThatThrownBy(() -> kept.get().parallel((ith, nth) -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is over");
  }

  @Test
  @DisplayName("JAVA-3: views are bounded exactly, sources cannot be written")
  void safeViews() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.bounds"), "MUL")
            .run(
                task -> {
                  TensorView x = task.src(0);
                  assertThat(x.data().byteSize()).isEqualTo(40);
                  assertThat(x.type()).isEqualTo(Type.F32);
                  assertThatThrownBy(() -> x.data().get(ValueLayout.JAVA_BYTE, 40))
                      .isInstanceOf(IndexOutOfBoundsException.class);
                  assertThatThrownBy(() -> x.data().set(ValueLayout.JAVA_BYTE, 0, (byte) 1))
                      .isInstanceOf(IllegalArgumentException.class);
                  assertThatThrownBy(() -> task.src(2))
                      .isInstanceOf(java.util.NoSuchElementException.class);
                  if (task.ith() == 0) {
                    task.dst().data().fill((byte) 0);
                  }
                }));
    Tensor input = bench.input(Workbench.values(10), 10);
    assertThat(bench.compute(bench.nodes.mul(input, input))).containsOnly(0);
  }

  @Test
  @DisplayName(
      "KERNEL-4: a graph that is computed directly uses no scratch memory of a closed scheduler")
  void scratchOfAClosedScheduler() {
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.scratch"), "SQR")
            .prepare(context -> Prepared.NOTHING.withWorkspace(1 << 20).withMaxTasks(1))
            .run(
                task -> {
                  task.workspace().fill((byte) 1);
                  float v = task.src(0).getFloat(0, 0, 0, 0);
                  task.dst().setFloat(0, 0, 0, 0, v * v);
                }));
    Tensor node = bench.input(new float[] {1}, 1);
    for (int i = 0; i < 8; i++) {
      node = bench.nodes.sqr(node);
    }
    Graph graph = bench.graph(node);
    try (Scheduler scheduler = Scheduler.of(bench.backend)) {
      scheduler.compute(graph);
      assertThat(scheduler.bufferSize(bench.backend)).isGreaterThan(1 << 20);
    }
    bench.nodes.allocate(bench.cpu);
    bench.backend.compute(graph);
    assertThat(node.getFloats()).containsExactly(1);
    assertThat(bench.ext.stats(bench.backend).workspaceBytes()).isGreaterThanOrEqualTo(1 << 20);
  }
}
