package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LifetimeTest {
  private Device cpu;

  @BeforeEach
  void load() {
    cpu = Ggml.load().device("CPU");
  }

  private static void assertClosed(ThrowingCallable use) {
    assertThatThrownBy(use)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @Test
  @DisplayName("JAVA-2: a context is closed twice without harm, and any use after that throws")
  void context() {
    Context context = Context.forGraph(16);
    Tensor a = context.newTensor(Type.F32, 2);
    Buffer buffer = context.allocate(cpu);
    Tensor square = context.sqr(a);
    Graph graph = context.newGraph(4).expand(square);
    context.close();
    context.close();
    assertThat(context.isClosed()).isTrue();
    assertClosed(() -> context.newTensor(Type.F32, 2));
    assertClosed(() -> context.add(a, a));
    assertClosed(() -> context.newGraph(4));
    assertClosed(() -> context.allocate(cpu));
    assertClosed(context::freeBytes);
    assertClosed(context::tensors);
    assertClosed(context::handle);
    assertClosed(a::getFloats);
    assertClosed(() -> a.setFloats(1, 2));
    assertClosed(a::name);
    assertClosed(() -> a.name("x"));
    assertClosed(a::op);
    assertClosed(a::asOutput);
    assertClosed(a::isAllocated);
    assertClosed(buffer::size);
    assertClosed(() -> buffer.fill((byte) 0));
    assertClosed(graph::nodes);
    assertClosed(graph::handle);
    assertClosed(() -> graph.expand(a));
    assertClosed(() -> cpu.supportsOp(square));
    assertThat(a.shape()).isEqualTo(Shape.of(2));
    assertThat(graph.nodeCount()).isEqualTo(1);
  }

  @Test
  @DisplayName("JAVA-2: a graph with tensors of a closed context is refused everywhere")
  void closedWeights() {
    Context weights = Context.forTensors(1);
    Tensor w = weights.newTensor(Type.F32, 2);
    weights.allocate(cpu);
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend);
        GraphAllocator allocator = GraphAllocator.of(cpu);
        Context context = Context.forGraph(16)) {
      Tensor square = context.sqr(context.view1d(w, 1, 0));
      Graph graph = context.newGraph(8).expand(square);
      scheduler.compute(graph);
      weights.close();
      assertClosed(() -> scheduler.compute(graph));
      assertClosed(() -> scheduler.allocate(graph));
      assertClosed(() -> scheduler.reserve(graph));
      assertClosed(() -> allocator.allocate(graph));
      assertClosed(() -> backend.compute(graph));
      assertClosed(square::getFloats);
      assertClosed(() -> context.add(w, w));
      assertClosed(() -> context.neg(square));
    }
  }

  @Test
  @DisplayName("JAVA-2: a context whose graph has memory in a scheduler can be closed before it")
  void contextBeforeScheduler() {
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      for (int i = 0; i < 3; i++) {
        try (Context context = Context.forGraph(8)) {
          Tensor a = context.newTensor(Type.F32, 2).asInput();
          Graph graph = context.newGraph(8).expand(context.sqr(a));
          scheduler.allocate(graph);
          a.setFloats(1, 2);
          scheduler.compute(graph);
        }
      }
      scheduler.reset();
    }
  }

  @Test
  @DisplayName("JAVA-2: a scheduler keeps a closed backend until it is closed itself")
  void backendBeforeScheduler() {
    Backend backend = cpu.newBackend();
    Scheduler scheduler = Scheduler.of(backend);
    backend.close();
    backend.close();
    assertClosed(backend::name);
    assertClosed(backend::threads);
    assertClosed(() -> backend.threads(1));
    assertClosed(() -> backend.setAbort(null));
    assertClosed(backend::handle);
    assertClosed(() -> Scheduler.of(backend));
    try (Context context = Context.forGraph(8)) {
      Tensor a = context.newTensor(Type.F32, 2).asInput();
      Tensor square = context.sqr(a).asOutput();
      Graph graph = context.newGraph(8).expand(square);
      scheduler.allocate(graph);
      a.setFloats(1, 2);
      scheduler.compute(graph);
      assertThat(square.getFloats()).containsExactly(1, 4);
      assertClosed(() -> backend.compute(graph));
      scheduler.close();
      scheduler.close();
      assertThatThrownBy(square::getFloats).isInstanceOf(IllegalStateException.class);
      assertClosed(() -> scheduler.compute(graph));
      assertClosed(() -> scheduler.allocate(graph));
      assertClosed(() -> scheduler.reserve(graph));
      assertClosed(scheduler::reset);
      assertClosed(scheduler::splits);
      assertClosed(scheduler::handle);
      assertClosed(() -> scheduler.bufferSize(backend));
      assertClosed(() -> scheduler.setEvalCallback(null));
    }
  }

  @Test
  @DisplayName("JAVA-2: an allocator is closed twice without harm, and throws after that")
  void allocator() {
    GraphAllocator allocator = GraphAllocator.of(cpu);
    allocator.close();
    allocator.close();
    assertClosed(allocator::bufferSize);
    try (Context context = Context.forGraph(8)) {
      Graph graph = context.newGraph(8).expand(context.sqr(context.newTensor(Type.F32, 2)));
      assertClosed(() -> allocator.allocate(graph));
    }
  }

  @Test
  @DisplayName("JAVA-2: closing everything while a compute runs lets the compute end first")
  void closeWhileComputing() throws InterruptedException {
    Backend backend = cpu.newBackend();
    Scheduler scheduler = Scheduler.of(backend);
    Context context = Context.forGraph(8);
    Tensor a = context.newTensor(Type.F32, 2).asInput();
    Tensor square = context.sqr(a).name("square").asOutput();
    Graph graph = context.newGraph(8).expand(context.neg(square));
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    float[][] seen = new float[1][];
    scheduler.setEvalCallback(
        new EvalCallback() {
          @Override
          public boolean wants(Tensor node) {
            return true;
          }

          @Override
          public boolean computed(Tensor node) {
            inside.countDown();
            await(closed);
            return true;
          }
        });
    scheduler.allocate(graph);
    a.setFloats(3, 4);
    Throwable[] failure = new Throwable[1];
    Thread computing =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    scheduler.compute(graph);
                  } catch (Throwable e) {
                    failure[0] = e;
                  }
                });
    await(inside);
    seen[0] = square.getFloats();
    scheduler.close();
    backend.close();
    context.close();
    closed.countDown();
    computing.join();
    assertThat(failure[0]).isNull();
    assertThat(seen[0]).containsExactly(9, 16);
    assertClosed(() -> scheduler.compute(graph));
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
