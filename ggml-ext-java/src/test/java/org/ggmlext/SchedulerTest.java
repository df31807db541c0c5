package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class SchedulerTest {
  private Backend backend;
  private Scheduler scheduler;
  private Context context;

  @BeforeEach
  void open() {
    backend = Ggml.load().device("CPU").newBackend();
    scheduler = Scheduler.of(backend);
    context = Context.forGraph(64);
  }

  @AfterEach
  void close() {
    context.close();
    scheduler.close();
    backend.close();
  }

  @Test
  @DisplayName("JAVA-2: a graph is scheduled 100 times, with a reset before each")
  void hundredTimes() {
    Tensor a = context.newTensor(Type.F32, 4).asInput();
    Tensor view = context.view1d(a, 2, 8);
    Tensor result = context.add(context.sqr(view), view).asOutput();
    Graph graph = context.newGraph(8).expand(result);
    for (int i = 0; i < 100; i++) {
      scheduler.allocate(graph);
      a.setFloats(0, 0, i, i + 1);
      scheduler.compute(graph);
      assertThat(result.getFloats()).containsExactly(i * i + i, (i + 1) * (i + 1) + i + 1);
      scheduler.reset();
      assertThat(result.isAllocated()).isFalse();
      assertThatThrownBy(result::getFloats).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: two graphs alternate; computing one takes the memory from the other")
  void alternate() {
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Tensor b = context.newTensor(Type.F32, 1000).asInput();
    Tensor first = context.sqr(a).asOutput();
    Tensor second = context.neg(b).asOutput();
    Graph small = context.newGraph(8).expand(first);
    Graph large = context.newGraph(8).expand(second);
    for (int i = 0; i < 5; i++) {
      scheduler.allocate(small);
      a.setFloats(3);
      scheduler.compute(small);
      assertThat(first.getFloats()).containsExactly(9);
      scheduler.allocate(large);
      assertThat(first.isAllocated()).isFalse();
      assertThatThrownBy(first::getFloats)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has no memory")
          .hasMessageEndingWith("a scheduler's memory belongs to the graph that it allocated last");
      b.setFloats(new float[1000]);
      scheduler.compute(large);
      assertThat(second.getFloats()).hasSize(1000).containsOnly(-0f);
    }
  }

  @Test
  @DisplayName("JAVA-2: a graph that has grown is allocated anew")
  void grown() {
    Tensor a = context.newTensor(Type.F32, 1);
    try (Context weights = Context.forTensors(1)) {
      Tensor w = weights.newTensor(Type.F32, 1);
      weights.allocate(backend).asWeights();
      w.setFloats(5);
      Tensor square = context.sqr(w).asOutput();
      Graph graph = context.newGraph(8).expand(square);
      scheduler.compute(graph);
      assertThat(square.getFloats()).containsExactly(25);
      Tensor more = context.neg(square).asOutput();
      graph.expand(more);
      scheduler.compute(graph);
      assertThat(more.getFloats()).containsExactly(-25);
      assertThat(w.getFloats()).containsExactly(5);
      assertThat(a.isAllocated()).isFalse();
    }
  }

  @Test
  @DisplayName("JAVA-2: reserve makes the buffer, but gives the graph no memory")
  void reserve() {
    Tensor a = context.newTensor(Type.F32, 10_000).asInput();
    Graph graph = context.newGraph(8).expand(context.sqr(a).asOutput());
    assertThat(scheduler.bufferSize(backend)).isZero();
    scheduler.reserve(graph);
    assertThat(scheduler.bufferSize(backend)).isGreaterThanOrEqualTo(40_000);
    assertThat(a.isAllocated()).isFalse();
  }

  @Test
  @DisplayName("JAVA-2: nodes say where they are: on the preferred one of backends with one memory")
  void assign() {
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Tensor square = context.sqr(a).asOutput();
    Graph graph = context.newGraph(8).expand(square);
    try (Backend other = backend.device().newBackend();
        Scheduler two = Scheduler.of(backend, other)) {
      two.assign(square, other);
      two.allocate(graph);
      assertThat(two.backendOf(square)).isEqualTo(backend);
      a.setFloats(3);
      two.compute(graph);
      assertThat(square.getFloats()).containsExactly(9);
      two.reset();
      two.allocate(graph);
      a.setFloats(4);
      two.compute(graph);
      assertThat(square.getFloats()).containsExactly(16);
      assertThat(two.backendOf(context.newTensor(Type.F32, 1))).isNull();
      assertThat(two.splits()).isPositive();
      assertThatThrownBy(() -> scheduler.assign(square, other))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> scheduler.bufferSize(other))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: an assigned node is not kept after its context is closed")
  void assignedAndClosed() throws InterruptedException {
    WeakReference<Context> closed = assignInClosed();
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    scheduler.allocate(context.newGraph(8).expand(context.sqr(a)));
    for (int i = 0; i < 100 && closed.get() != null; i++) {
      System.gc();
      Thread.sleep(10);
    }
    assertThat(closed.get()).isNull();
  }

  private WeakReference<Context> assignInClosed() {
    try (Context nodes = Context.forGraph(8)) {
      Tensor square = nodes.sqr(nodes.newTensor(Type.F32, 1).asInput()).asOutput();
      scheduler.assign(square, backend);
      scheduler.allocate(nodes.newGraph(8).expand(square));
      return new WeakReference<>(nodes);
    }
  }

  @Test
  @DisplayName("JAVA-2: schedulers that cannot be are refused")
  void badSchedulers() {
    assertThatThrownBy(Scheduler::of).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Scheduler.of(backend, backend))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("twice");
    assertThatThrownBy(() -> Scheduler.of(List.of(backend), 0))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("JAVA-2: a graph larger than the scheduler's is refused, and so is an empty one")
  void badGraphs() {
    Tensor a = context.newTensor(Type.F32, 1);
    Graph graph = context.newGraph(8);
    assertThatThrownBy(() -> scheduler.compute(graph))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("no nodes");
    graph.expand(context.sqr(context.sqr(a)));
    try (Scheduler tiny = Scheduler.of(List.of(backend), 2)) {
      assertThatThrownBy(() -> tiny.allocate(graph))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("3 nodes and leaves");
    }
  }

  @Test
  @DisplayName("JAVA-2: what only views read, or nothing, gets memory, and is computed with")
  void unread() {
    Tensor a = context.newTensor(Type.F32, 2, 3);
    Tensor b = context.newTensor(Type.F32, 4);
    Tensor c = context.newTensor(Type.F32, 2);
    Tensor view = context.view1d(a, 2, 8);
    Tensor transposed = context.transpose(a);
    Tensor square = context.sqr(context.view1d(b, 2, 8)).asOutput();
    scheduler.allocate(context.newGraph(8).expand(view));
    assertThat(a.isAllocated()).isTrue();
    scheduler.reset();
    Graph graph = context.newGraph(16).expand(view, transposed, square, c);
    scheduler.reserve(graph);
    assertThat(a.isAllocated()).isFalse();
    scheduler.allocate(graph);
    a.setFloats(1, 2, 3, 4, 5, 6);
    b.setFloats(7, 8, 9, 10);
    c.setFloats(11, 12);
    scheduler.compute(graph);
    assertThat(view.getFloats()).containsExactly(3, 4);
    assertThat(transposed.getFloats()).containsExactly(1, 3, 5, 2, 4, 6);
    assertThat(square.getFloats()).containsExactly(81, 100);
    assertThat(c.getFloats()).containsExactly(11, 12);
  }

  @Test
  @DisplayName("JAVA-2: a scheduler takes memory only from tensors that it gave it to")
  void takesItsOwnOnly() {
    Tensor a = context.newTensor(Type.F32, 4).asInput();
    Tensor square = context.sqr(a).asOutput();
    Graph graph = context.newGraph(8).expand(square);
    try (Backend other = backend.device().newBackend();
        Scheduler two = Scheduler.of(backend, other)) {
      scheduler.allocate(graph);
      two.allocate(graph);
      scheduler.reset();
      assertThat(square.isAllocated()).isFalse();
      two.reset();
      assertThat(a.isAllocated()).isFalse();
      assertThat(square.isAllocated()).isFalse();
      assertThatThrownBy(square::getFloats).isInstanceOf(IllegalStateException.class);

      two.allocate(graph);
      scheduler.allocate(graph);
      scheduler.reset();
      a.setFloats(1, 2, 3, 4);
      two.compute(graph);
      assertThat(square.getFloats()).containsExactly(1, 4, 9, 16);
    }
  }

  @Test
  @DisplayName("JAVA-2: a view learns where its storage is, after that lost its memory elsewhere")
  void viewOfLostStorage() {
    Tensor a = context.newTensor(Type.F32, 4).asInput();
    Tensor square = context.sqr(a).asOutput();
    try (Context others = Context.forGraph(8);
        Scheduler second = Scheduler.of(backend);
        Scheduler third = Scheduler.of(backend)) {
      Tensor view = others.view1d(a, 2, 8);
      Tensor result = others.neg(view).asOutput();
      Graph graph = others.newGraph(8).expand(result);
      scheduler.allocate(context.newGraph(8).expand(square));
      second.allocate(graph);
      scheduler.reset();
      second.reset();
      assertThat(view.isAllocated()).isFalse();

      try (Scheduler first = Scheduler.of(backend)) {
        first.allocate(context.newGraph(8).expand(square));
        second.allocate(graph);
      }
      third.allocate(graph);
      a.setFloats(1, 2, 3, 4);
      third.compute(graph);
      assertThat(result.getFloats()).containsExactly(-3, -4);
    }
  }

  @Test
  @DisplayName("JAVA-2: an operation that no device supports is refused, and names the node")
  void unsupported() {
    // The CPU has no kernel that writes this type.
    Tensor target = context.newTensor(Type.IQ3_S, 256);
    Tensor source = context.newTensor(Type.F32, 256);
    Tensor copy = context.cpy(source, target).name("to-iq3");
    Graph graph = context.newGraph(8).expand(copy);
    assertThatThrownBy(() -> scheduler.allocate(graph))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("CPY")
        .hasMessageContaining("to-iq3");
    assertThat(backend.device().supportsOp(copy)).isFalse();
  }

  @Test
  @DisplayName("JAVA-2: a graph without enough memory is refused, and the scheduler works on")
  void noMemory() {
    Tensor huge = context.newTensor(Type.F32, 1L << 30, 1L << 20).asInput();
    Graph graph = context.newGraph(8).expand(context.sqr(huge));
    assertThatThrownBy(() -> scheduler.allocate(graph)).isInstanceOf(GgmlException.class);
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Tensor square = context.sqr(a).asOutput();
    Graph small = context.newGraph(8).expand(square);
    scheduler.allocate(small);
    a.setFloats(2);
    scheduler.compute(small);
    assertThat(square.getFloats()).containsExactly(4);
  }

  @Test
  @DisplayName("JAVA-2: an evaluation callback sees the nodes that it wants, with their data")
  void evalCallback() {
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Tensor square = context.sqr(a).name("square");
    Tensor result = context.neg(square).name("result").asOutput();
    Graph graph = context.newGraph(8).expand(result);
    List<String> seen = new ArrayList<>();
    scheduler.setEvalCallback(watch(seen, true));
    scheduler.allocate(graph);
    a.setFloats(3);
    scheduler.compute(graph);
    assertThat(seen).containsExactly("square [9.0]");
    scheduler.setEvalCallback(null);
    scheduler.compute(graph);
    assertThat(seen).hasSize(1);
  }

  private static EvalCallback watch(List<String> seen, boolean goOn) {
    return new EvalCallback() {
      @Override
      public boolean wants(Tensor node) {
        return node.name().equals("square");
      }

      @Override
      public boolean computed(Tensor node) {
        seen.add(node.name() + " " + Arrays.toString(node.getFloats()));
        return goOn;
      }
    };
  }

  @Test
  @DisplayName(
      "JAVA-4: what an evaluation callback throws is the cause, and the next compute works")
  void evalCallbackThrows() {
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Tensor result = context.neg(context.sqr(a)).asOutput();
    Graph graph = context.newGraph(8).expand(result);
    IllegalStateException thrown = new IllegalStateException("enough");
    scheduler.setEvalCallback(
        new EvalCallback() {
          @Override
          public boolean wants(Tensor node) {
            throw thrown;
          }

          @Override
          public boolean computed(Tensor node) {
            return true;
          }
        });
    scheduler.allocate(graph);
    a.setFloats(3);
    assertThatThrownBy(() -> scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isSameAs(thrown);
    scheduler.setEvalCallback(null);
    a.setFloats(3);
    scheduler.compute(graph);
    assertThat(result.getFloats()).containsExactly(-9);
  }

  @Test
  @DisplayName("JAVA-2: a scheduler cannot be used by a callback of its own compute")
  void reentrant() {
    Tensor a = context.newTensor(Type.F32, 1).asInput();
    Graph graph = context.newGraph(8).expand(context.sqr(a).asOutput());
    scheduler.setEvalCallback(
        new EvalCallback() {
          @Override
          public boolean wants(Tensor node) {
            scheduler.reset();
            return true;
          }

          @Override
          public boolean computed(Tensor node) {
            return true;
          }
        });
    scheduler.allocate(graph);
    a.setFloats(1);
    assertThatThrownBy(() -> scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .hasCauseInstanceOf(IllegalStateException.class);
  }
}
