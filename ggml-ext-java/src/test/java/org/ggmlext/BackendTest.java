package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class BackendTest {
  private Backend backend;
  private Context context;

  @BeforeEach
  void open() {
    backend = Ggml.load().device(DeviceType.CPU).newBackend();
    context = Context.forGraph(16);
  }

  @AfterEach
  void close() {
    backend.close();
    context.close();
  }

  @Test
  @DisplayName("JAVA-2: the CPU says what it is")
  void device() {
    Device cpu = backend.device();
    assertThat(cpu.name()).isEqualTo("CPU");
    assertThat(cpu.description()).isNotEmpty();
    assertThat(cpu.memory().total()).isPositive();
    assertThat(backend.name()).isEqualTo("CPU");
    assertThatThrownBy(() -> Ggml.get().device("no such device"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CPU");
  }

  @Test
  @DisplayName("JAVA-2: a graph whose tensors have memory is computed directly")
  void compute() {
    Tensor a = context.newTensor(Type.F32, 2);
    Tensor view = context.view1d(a, 1, 4);
    Tensor result = context.sqr(view);
    context.allocate(backend);
    a.setFloats(2, 3);
    backend.compute(context.newGraph(4).expand(result));
    assertThat(result.getFloats()).containsExactly(9);
  }

  @Test
  @DisplayName("JAVA-2: a graph allocator gives one graph at a time memory")
  void graphAllocator() {
    Tensor a = context.newTensor(Type.F32, 2).asInput();
    Tensor result = context.sqr(a).asOutput();
    Graph graph = context.newGraph(4).expand(result);
    Graph other = context.newGraph(4).expand(context.neg(a));
    try (GraphAllocator allocator = GraphAllocator.of(backend.device())) {
      allocator.allocate(graph);
      assertThat(allocator.bufferSize()).isPositive();
      a.setFloats(2, 3);
      backend.compute(graph);
      assertThat(result.getFloats()).containsExactly(4, 9);
      allocator.allocate(other);
      assertThatThrownBy(result::getFloats).isInstanceOf(IllegalStateException.class);
    }
    assertThat(a.isAllocated()).isFalse();
    assertThatThrownBy(() -> backend.compute(graph)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("JAVA-2: a CPU backend has at most as many threads as there are cores")
  void threads() {
    int cores = Runtime.getRuntime().availableProcessors();
    assertThat(backend.threads()).isEqualTo(cores);
    assertThat(backend.threads(1).threads()).isEqualTo(1);
    assertThat(backend.threads(10_000).threads()).isEqualTo(cores);
    assertThatThrownBy(() -> backend.threads(0)).isInstanceOf(IllegalArgumentException.class);
    Tensor a = context.newTensor(Type.F32, 1);
    Tensor result = context.sqr(a);
    context.allocate(backend);
    a.setFloats(3);
    Graph graph = context.newGraph(4).expand(result);
    for (int i = 1; i <= cores; i++) {
      backend.threads(i).compute(graph);
      assertThat(result.getFloats()).containsExactly(9);
    }
  }

  @Test
  @DisplayName("JAVA-2: an abort callback stops a compute, and what it throws is the cause")
  void abort() {
    Tensor a = context.newTensor(Type.F32, 1);
    Tensor result = context.sqr(context.neg(a));
    context.allocate(backend);
    a.setFloats(3);
    Graph graph = context.newGraph(4).expand(result);
    AtomicInteger asked = new AtomicInteger();
    backend.setAbort(() -> asked.incrementAndGet() > 0);
    assertThatThrownBy(() -> backend.compute(graph))
        .isInstanceOfSatisfying(
            GgmlException.class, aborted -> assertThat(aborted.isAborted()).isTrue())
        .hasMessageContaining("ABORTED");
    assertThat(asked).hasPositiveValue();
    StackOverflowError thrown = new StackOverflowError();
    backend.setAbort(
        () -> {
          throw thrown;
        });
    assertThatThrownBy(() -> backend.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isSameAs(thrown);
    backend.setAbort(null).compute(graph);
    assertThat(result.getFloats()).containsExactly(9);
  }

  @Test
  @DisplayName("JAVA-2: a callback of a compute cannot expand its graph, other threads wait for it")
  @Timeout(60)
  void expandWhileComputed() throws InterruptedException {
    Tensor a = context.newTensor(Type.F32, 1);
    Tensor result = context.sqr(context.neg(a));
    Tensor more = context.neg(result);
    context.allocate(backend);
    a.setFloats(3);
    Graph graph = context.newGraph(4).expand(result);
    backend.setAbort(() -> graph.expand(more).nodeCount() > 3);
    assertThatThrownBy(() -> backend.compute(graph))
        .isInstanceOf(GgmlException.class)
        .hasCauseInstanceOf(IllegalStateException.class);
    assertThat(graph.nodeCount()).isEqualTo(2);

    Thread other = Thread.ofPlatform().unstarted(() -> graph.expand(more));
    AtomicInteger asked = new AtomicInteger();
    backend.setAbort(
        () -> {
          if (asked.incrementAndGet() == 1) {
            other.start();
            return ended(other) || graph.nodeCount() != 2;
          }
          return false;
        });
    backend.compute(graph);
    other.join();
    assertThat(asked).hasPositiveValue();
    assertThat(graph.nodeCount()).isEqualTo(3);
    backend.setAbort(null).compute(graph);
    assertThat(more.getFloats()).containsExactly(-9);
  }

  private static boolean ended(Thread thread) {
    try {
      return thread.join(Duration.ofMillis(200));
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
