package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.ggmlext.bindings.ggml_h;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class GraphTest {
  @BeforeEach
  void load() {
    Ggml.load();
  }

  @Test
  @DisplayName("JAVA-2: a graph lists its nodes in an order in which they can be computed")
  void order() {
    try (Context context = Context.forGraph(16)) {
      Tensor a = context.newTensor(Type.F32, 2);
      Tensor square = context.sqr(a);
      Tensor sum = context.add(square, a);
      Graph graph = context.newGraph(16).expand(sum);
      assertThat(graph.nodes()).containsExactly(square, sum);
      assertThat(graph.leaves()).containsExactly(a);
      assertThat(graph.contains(square)).isTrue();
      assertThat(graph.expand(sum).nodeCount()).isEqualTo(2);
    }
  }

  @Test
  @DisplayName("JAVA-2: a graph that is too small refuses, and stays as it was")
  void tooSmall() {
    try (Context context = Context.forGraph(16)) {
      Tensor a = context.newTensor(Type.F32, 2);
      Tensor two = context.sqr(context.sqr(a));
      Graph graph = context.newGraph(2).expand(two);
      assertThatThrownBy(() -> graph.expand(context.sqr(two)))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("3 nodes");
      assertThat(graph.nodeCount()).isEqualTo(2);
      Tensor b = context.newTensor(Type.F32, 2);
      Tensor c = context.newTensor(Type.F32, 2);
      Graph other = context.newGraph(2);
      assertThatThrownBy(() -> other.expand(context.add(context.add(a, b), c)))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("3 leaves");
    }
  }

  @Test
  @DisplayName("JAVA-2: of several outputs, all are added to a graph, or none")
  void tooSmallForAll() {
    try (Context context = Context.create(1 << 16)) {
      Tensor a = context.newTensor(Type.F32, 2);
      Tensor one = context.sqr(a);
      Tensor three = context.sqr(context.sqr(one));
      Graph graph = context.newGraph(2);
      assertThatThrownBy(() -> graph.expand(one, three))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("3 nodes");
      assertThat(graph.nodes()).isEmpty();
      assertThat(graph.leaves()).isEmpty();
      assertThat(ggml_h.ggml_graph_n_nodes(graph.handle())).isZero();

      Graph large = context.newGraph(4).expand(three, one, context.neg(one), one);
      assertThat(large.nodes()).hasSize(4).first().isEqualTo(one);
      assertThat(ggml_h.ggml_graph_n_nodes(large.handle())).isEqualTo(4);
    }
  }

  @Test
  @DisplayName("JAVA-2: a chain of 50,000 nodes does not overflow a stack")
  void longChain() throws InterruptedException {
    int length = 50_000;
    try (Context context = Context.forGraph(length)) {
      Tensor next = context.newTensor(Type.F32, 1);
      for (int i = 0; i < length; i++) {
        next = context.reshape(next, 1);
      }
      Tensor end = next;
      Graph graph = context.newGraph(length);
      Thread thread = Thread.ofVirtual().start(() -> graph.expand(end));
      thread.join();
      assertThat(graph.nodeCount()).isEqualTo(length);
      assertThat(ggml_h.ggml_graph_n_nodes(graph.handle())).isEqualTo(length);
    }
  }
}
