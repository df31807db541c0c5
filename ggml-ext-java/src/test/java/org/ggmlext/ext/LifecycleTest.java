package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.Native;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class LifecycleTest {
  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  private static Kernel plusOne() {
    return Kernel.builder(Workbench.unique("test.mul.life"), "MUL")
        .rows(
            (task, first, end) -> {
              for (long row = first; row < end; row++) {
                task.dst().setFloat(0, row, 0, 0, task.src(0).getFloat(0, row, 0, 0) + 1);
              }
            });
  }

  private Tensor node() {
    Tensor x = bench.input(Workbench.values(32), 1, 32);
    return bench.nodes.mul(x, x);
  }

  @Test
  @DisplayName("JAVA-3: attaching twice gives the same layer")
  void attachTwice() {
    assertThat(Extensions.attach(Ggml.load())).isSameAs(bench.ext);
    assertThat(bench.ext.abi().graphViews()).isTrue();
  }

  @Test
  @DisplayName(
      "CORE-4: a kernel in a live plan stays registered, with the reason; after the backend it"
          + " goes")
  void kernelInUse() {
    Registration kernel = bench.register(plusOne());
    Graph graph = bench.graph(node());
    bench.scheduler.compute(graph);
    assertThatThrownBy(kernel::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(kernel.name());
    assertThat(kernel.isOpen()).isTrue();
    bench.scheduler.compute(graph);
    assertThat(kernel.stats().executed()).isEqualTo(2);
    bench.scheduler.close();
    bench.backend.close();
    kernel.close();
    kernel.close();
    assertThat(kernel.isOpen()).isFalse();
    assertThatThrownBy(() -> kernel.setEnabled(true)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(kernel::stats).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName(
      "CORE-4: closing registration, context and backend while a compute runs waits or is refused")
  void closeDuringCompute() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.blocks"), "MUL")
                .run(
                    task -> {
                      running.countDown();
                      if (!go.await(60, TimeUnit.SECONDS)) {
                        throw new IllegalStateException("nobody lets the kernel go on");
                      }
                      if (task.ith() == 0) {
                        task.dst().data().fill((byte) 0);
                      }
                    }));
    Graph graph = bench.graph(node());
    try (ExecutorService pool = Executors.newSingleThreadExecutor()) {
      Future<?> compute = pool.submit(() -> bench.scheduler.compute(graph));
      assertThat(running.await(60, TimeUnit.SECONDS)).isTrue();
      assertThatThrownBy(kernel::close).isInstanceOf(IllegalStateException.class);
      bench.nodes.close();
      bench.inputs.close();
      bench.scheduler.close();
      bench.backend.close();
      go.countDown();
      compute.get(60, TimeUnit.SECONDS);
    }
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> bench.ext.stats(bench.backend))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> bench.ext.plans(bench.backend))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> bench.ext.attach(bench.backend))
        .isInstanceOf(IllegalStateException.class);
    kernel.close();
  }

  @Test
  @DisplayName("JAVA-3: a view that a kernel kept is over after the call, where the layer can tell")
  void keptGraphView() {
    AtomicReference<GraphView> kept = new AtomicReference<>();
    bench.register(GraphOptimizer.of(Workbench.unique("test.keeps"), kept::set));
    bench.compute(node());
    assertThat(kept.get()).isNotNull();
    assertThatThrownBy(() -> kept.get().node(0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("JAVA-3: a graph scheduled 100 times keeps its kernel and its result")
  void hundredTimes() {
    Registration kernel = bench.register(plusOne());
    Tensor node = node();
    Graph graph = bench.graph(node);
    for (int i = 0; i < 100; i++) {
      if (i % 10 == 0) {
        bench.scheduler.reset();
      }
      bench.scheduler.compute(graph);
      assertThat(node.getFloats()[3]).isEqualTo(Workbench.values(32)[3] + 1);
    }
    assertThat(kernel.stats().executed()).isEqualTo(100);
  }

  @Test
  @DisplayName(
      "JAVA-3: nodes have the sources that they were made of, planned with workspace or not")
  void workspaceIsNoSource() {
    Operator<NoAttributes> operator =
        Operator.of(
            Workbench.unique("test.workspace") + ".v1",
            (sources, none) -> OutputSpec.like(sources.getFirst()));
    bench.register(operator);
    bench.register(
        Kernel.builder(Workbench.unique("test.workspace"), operator)
            .prepare(context -> Prepared.NOTHING.withWorkspace(1000))
            .rows(
                (task, first, end) -> {
                  for (long row = first; row < end; row++) {
                    task.dst().setFloat(0, row, 0, 0, task.src(0).getFloat(0, row, 0, 0) + 1);
                  }
                }));
    Tensor x = bench.input(Workbench.values(32), 1, 32);
    Tensor next = x;
    for (int i = 0; i < 6; i++) {
      next = operator.create(bench.nodes, next);
    }
    Tensor y = next;
    Graph graph = bench.graph(y);
    List<Runnable> plans =
        List.of(
            () -> bench.scheduler.reserve(graph),
            () -> bench.scheduler.allocate(graph),
            bench.scheduler::reset,
            () -> bench.scheduler.compute(graph));
    for (Runnable plan : plans) {
      plan.run();
      Graph same = bench.graph(y);
      assertThat(same.leaves()).containsExactly(x);
      assertThat(same.nodes()).isEqualTo(graph.nodes());
    }
    bench.scheduler.allocate(graph);
    bench.scheduler.compute(graph);
    float[] sums = Workbench.values(32);
    for (int i = 0; i < sums.length; i++) {
      sums[i] = sums[i] + 1 + 1 + 1 + 1 + 1 + 1;
    }
    assertThat(y.getFloats()).isEqualTo(sums);
    bench.scheduler.reserve(graph);
    assertThat(bench.compute(y)).isEqualTo(sums);
  }

  @Test
  @DisplayName("JAVA-2: a kernel that expands the graph of its own compute fails, on each thread")
  void expandByKernel() {
    AtomicReference<Graph> graph = new AtomicReference<>();
    AtomicReference<Tensor> more = new AtomicReference<>();
    AtomicInteger task = new AtomicInteger();
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.expands"), "MUL")
            .run(
                call -> {
                  if (call.ith() == Math.min(task.get(), call.nth() - 1)) {
                    graph.get().expand(more.get());
                  }
                }));
    Tensor node = node();
    graph.set(bench.graph(node));
    more.set(bench.nodes.neg(node));
    for (int ith = 0; ith < 2; ith++) {
      task.set(ith);
      assertThatThrownBy(() -> bench.scheduler.compute(graph.get()))
          .isInstanceOf(GgmlException.class)
          .hasCauseInstanceOf(IllegalStateException.class);
    }
    assertThat(graph.get().nodeCount()).isEqualTo(1);
  }

  @Test
  @DisplayName("JAVA-3: a kernel is not closed or switched off while a graph is being planned")
  void closeDuringPlanning() throws Exception {
    Operator<NoAttributes> operator =
        Operator.of(
            Workbench.unique("test.planned") + ".v1",
            (sources, none) -> OutputSpec.like(sources.getFirst()));
    bench.register(operator);
    AtomicReference<ThrowingCallable> asked = new AtomicReference<>();
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.planned"), operator)
                .supports(
                    node -> {
                      ThrowingCallable once = asked.getAndSet(null);
                      if (once != null) {
                        try {
                          once.call();
                        } catch (Throwable e) {
                          throw new AssertionError(e);
                        }
                      }
                      return Support.yes();
                    })
                .rows((task, first, end) -> task.dst().data().fill((byte) 0)));
    Tensor x = bench.input(Workbench.values(32), 1, 32);
    Graph graph = bench.graph(operator.create(bench.nodes, x));
    for (ThrowingCallable change : List.<ThrowingCallable>of(kernel::close, () -> off(kernel))) {
      asked.set(
          () ->
              assertThatThrownBy(change)
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("callback of planning"));
      bench.scheduler.allocate(graph);
      assertThat(asked.get()).isNull();
    }
    try (ExecutorService pool = Executors.newSingleThreadExecutor()) {
      AtomicReference<Future<?>> other = new AtomicReference<>();
      asked.set(
          () -> {
            other.set(pool.submit(() -> off(kernel)));
            assertThatThrownBy(() -> other.get().get(200, TimeUnit.MILLISECONDS))
                .isInstanceOf(TimeoutException.class);
          });
      bench.scheduler.compute(bench.graph(operator.create(bench.nodes, x)));
      other.get().get(60, TimeUnit.SECONDS);
    }
    assertThat(kernel.isEnabled()).isFalse();
    assertThatThrownBy(() -> bench.scheduler.allocate(graph)).isInstanceOf(GgmlException.class);
    kernel.setEnabled(true);
    bench.scheduler.compute(graph);
  }

  private static void off(Registration kernel) {
    kernel.setEnabled(false);
  }

  @Test
  @DisplayName("JAVA-3: registering, computing and closing again and again leaves nothing behind")
  void churn() {
    for (int i = 0; i < 200; i++) {
      try (Context inputs = Context.create(1 << 14);
          Context nodes = Context.create(1 << 16)) {
        Tensor x = inputs.newTensor(Type.F32, 1, 4);
        inputs.allocate(bench.cpu);
        x.setFloats(1, 2, 3, 4);
        try (Registration kernel = bench.ext.register(bench.cpu, plusOne())) {
          try (Backend backend = bench.cpu.newBackend();
              Scheduler scheduler = Scheduler.of(backend)) {
            Tensor out = nodes.mul(x, x).asOutput();
            scheduler.compute(nodes.newGraph(16).expand(out));
            assertThat(out.getFloats()).containsExactly(2, 3, 4, 5);
            assertThat(kernel.stats().executed()).isEqualTo(1);
          }
        }
      }
    }
  }

  @Test
  @DisplayName(
      "JAVA-3: two threads with two schedulers on one device, and virtual threads, compute alike")
  void concurrent() throws Exception {
    bench.register(plusOne());
    for (boolean virtual : new boolean[] {false, true}) {
      try (ExecutorService pool =
          virtual ? Executors.newVirtualThreadPerTaskExecutor() : Executors.newFixedThreadPool(2)) {
        List<Future<?>> all = new ArrayList<>();
        for (int t = 0; t < (virtual ? 8 : 2); t++) {
          float start = t;
          all.add(pool.submit(() -> computeMany(start)));
        }
        for (Future<?> future : all) {
          future.get(100, TimeUnit.SECONDS);
        }
      }
    }
  }

  private void computeMany(float start) {
    try (Backend backend = bench.cpu.newBackend().threads(1);
        Scheduler scheduler = Scheduler.of(backend);
        Context inputs = Context.create(1 << 14);
        Context nodes = Context.create(1 << 16)) {
      Tensor x = inputs.newTensor(Type.F32, 1, 3);
      inputs.allocate(bench.cpu);
      Tensor out = nodes.mul(x, x).asOutput();
      Graph graph = nodes.newGraph(16).expand(out);
      for (int i = 0; i < 200; i++) {
        x.setFloats(start, i, -i);
        scheduler.compute(graph);
        assertThat(out.getFloats()).containsExactly(start + 1, i + 1, -i + 1);
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: queries of a node are refused where a context of its sources is closed")
  void queryOfClosedContexts() {
    Context weights = Context.forTensors(2);
    Tensor w = weights.newTensor(Type.F32, 8, 8);
    Tensor product = bench.nodes.mulMat(w, w);
    assertThat(bench.ext.supportsNatively(bench.cpu, product)).isTrue();
    assertThat(bench.cpu.supportsOp(product)).isTrue();
    weights.close();
    for (ThrowingCallable query :
        List.<ThrowingCallable>of(
            () -> bench.ext.supportsNatively(bench.cpu, product),
            () -> bench.ext.supportsNatively(bench.cpu, w),
            () -> bench.cpu.supportsOp(product))) {
      assertThatThrownBy(query)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  @Test
  @DisplayName("JAVA-2: what is asked of a closed backend is refused")
  void closedBackend() {
    Backend backend = bench.cpu.newBackend();
    bench.ext.attach(backend);
    assertThat(bench.ext.plans(backend)).isEmpty();
    assertThat(bench.ext.stats(backend).computed()).isZero();
    backend.close();
    for (ThrowingCallable query :
        List.<ThrowingCallable>of(
            () -> bench.ext.attach(backend),
            () -> bench.ext.plans(backend),
            () -> bench.ext.stats(backend),
            () -> backend.nativeCall(handle -> handle))) {
      assertThatThrownBy(query)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  /** Uses the backend in all ways that wait for its compute, and keeps what they throw. */
  private void useBackend(Graph graph, Collection<Throwable> thrown) {
    for (ThrowingCallable use :
        List.<ThrowingCallable>of(
            () -> bench.backend.threads(1),
            () -> bench.backend.setAbort(null),
            () -> bench.backend.compute(graph))) {
      Throwable refusal = catchThrowable(use);
      thrown.add(refusal == null ? new AssertionError("not refused") : refusal);
    }
  }

  @Test
  @Timeout(value = 100, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  @DisplayName("JAVA-2: a kernel that uses the backend that it runs for is refused, on all threads")
  void backendWithinItsCompute() {
    Collection<Throwable> thrown = new ConcurrentLinkedQueue<>();
    Tensor a = bench.input(new float[] {5}, 1);
    Tensor inner = bench.inputs.neg(a);
    bench.inputs.allocate(bench.cpu);
    Graph graph = bench.inputs.newGraph(4).expand(inner);
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    Backend other = bench.cpu.newBackend().threads(1);
    bench.atEnd(other::close);
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.uses"), "MUL")
            .run(
                task -> {
                  threads.add(Thread.currentThread());
                  useBackend(graph, thrown);
                  if (task.ith() == task.nth() - 1) {
                    // Another one is none of its business, and changes nothing about that.
                    other.compute(graph);
                    task.dst().setFloat(0, 0, 0, 0, 7);
                  }
                  useBackend(graph, thrown);
                }));
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.uses"), "SQR")
            .execute(
                execution -> {
                  execution.parallel((ith, nth) -> useBackend(graph, thrown));
                  execution.dst().setFloat(0, 0, 0, 0, execution.src(0).getFloat(0, 0, 0, 0) + 1);
                }));
    int count = bench.backend.threads();
    Tensor x = bench.input(new float[] {2}, 1);
    assertThat(bench.compute(bench.nodes.sqr(bench.nodes.mul(x, x)))).containsExactly(8);
    assertThat(threads).hasSize(count);
    assertThat(thrown)
        .hasSize(3 * (2 + 1) * count)
        .allSatisfy(
            e ->
                assertThat(e)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("%s cannot be used by a callback", bench.backend));
    assertThat(inner.getFloats()).containsExactly(-5);
    // Afterwards it can.
    assertThat(bench.backend.threads(1).threads()).isEqualTo(1);
    a.setFloats(6);
    bench.backend.compute(graph);
    assertThat(inner.getFloats()).containsExactly(-6);
  }

  @Test
  @Timeout(value = 100, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  @DisplayName(
      "JAVA-2: an abort callback that uses its backend aborts the compute by what is thrown")
  void backendWithinItsAbort() {
    Tensor a = bench.input(new float[] {5}, 1);
    Tensor inner = bench.inputs.neg(a);
    bench.inputs.allocate(bench.cpu);
    Graph graph = bench.inputs.newGraph(4).expand(inner);
    bench.backend.setAbort(() -> bench.backend.threads(1).isClosed());
    assertThatThrownBy(() -> bench.backend.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("cannot be used by a callback");
    bench.backend.setAbort(null).compute(graph);
    assertThat(inner.getFloats()).containsExactly(-5);
  }

  @Test
  @DisplayName("JAVA-2: what is closed during a native call stays until it ends")
  void closedDuringNativeCall() {
    Backend backend = bench.cpu.newBackend();
    String name =
        backend.nativeCall(
            handle -> {
              backend.close();
              return Native.string(ggml_backend_h.ggml_backend_name(handle));
            });
    assertThat(name).isEqualTo("CPU");
    Context weights = Context.forTensors(1);
    Tensor node = bench.nodes.sqr(weights.newTensor(Type.F32, 8).name("kept"));
    String source =
        node.nativeCall(
            handle -> {
              weights.close();
              return Native.name(Native.src(handle.address(), 0));
            });
    assertThat(source).isEqualTo("kept");
    assertThatThrownBy(() -> node.nativeCall(handle -> handle))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @Test
  @DisplayName(
      "JAVA-2: schedulers of several threads that share a backend plan one after the other")
  void sharedBackend() throws Exception {
    bench.register(
        FusionRule.builder(
                Workbench.unique("test.sqr_add"),
                Pattern.start("SQR").capture("x", 0).then("ADD").captureOther("y"))
            .prepare(
                context ->
                    Prepared.NOTHING
                        .withWorkspace(64)
                        .withState(List.of(context.capture("x"), context.capture("y"))))
            .rows(
                (task, first, end) -> {
                  List<?> at = task.state(List.class);
                  float x = task.tensor((Capture) at.get(0)).getFloat(0, 0, 0, 0);
                  float y = task.tensor((Capture) at.get(1)).getFloat(0, 0, 0, 0);
                  task.dst().setFloat(0, 0, 0, 0, x * x + y);
                }));
    Tensor x = bench.input(new float[] {1}, 1);
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<Integer>> wrong = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        int seed = thread;
        wrong.add(threads.submit(() -> computeChains(x, seed)));
      }
      for (Future<Integer> count : wrong) {
        assertThat(count.get()).isZero();
      }
    }
    assertThat(bench.ext.stats(bench.backend).groups()).isPositive();
  }

  /** Adds up 1 + 1 + ... in graphs of many lengths, and counts wrong sums. */
  private int computeChains(Tensor x, int seed) {
    int wrong = 0;
    try (Scheduler scheduler = Scheduler.of(bench.backend)) {
      for (int i = 0; i < 400; i++) {
        int length = 3 + (7 * i + 11 * seed) % 40;
        try (Context context = Context.forGraph(128)) {
          Tensor sum = x;
          for (int j = 0; j < length; j++) {
            sum = context.add(context.sqr(x), sum);
          }
          scheduler.compute(context.newGraph(128).expand(sum.asOutput()));
          wrong += sum.getFloats()[0] == length + 1 ? 0 : 1;
        }
      }
    }
    return wrong;
  }
}
