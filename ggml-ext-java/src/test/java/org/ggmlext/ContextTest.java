package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.ggmlext.bindings.ggml_h;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ContextTest {
  private Device cpu;

  @BeforeEach
  void load() {
    cpu = Ggml.load().device("CPU");
  }

  @Test
  @DisplayName("JAVA-2: a context for 3 tensors holds 3, and refuses the fourth")
  void fullOfTensors() {
    try (Context context = Context.forTensors(3)) {
      Tensor a = context.newTensor(Type.F32, 4);
      context.newTensor(Type.F32, 4);
      context.add(a, a);
      assertThatThrownBy(() -> context.newTensor(Type.F32, 4))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("full");
      assertThatThrownBy(() -> context.add(a, a)).isInstanceOf(GgmlException.class);
      assertThatThrownBy(() -> context.newGraph(8)).isInstanceOf(GgmlException.class);
      assertThat(context.tensors()).hasSize(3);
    }
  }

  @Test
  @DisplayName("JAVA-2: an operation that makes two tensors needs room for both")
  void roomForTwo() {
    try (Context context = Context.forTensors(2)) {
      Tensor a = context.newTensor(Type.F32, 4);
      assertThatThrownBy(() -> context.clamp(a, 0, 1)).isInstanceOf(GgmlException.class);
      assertThat(context.sqr(a).shape()).isEqualTo(Shape.of(4));
    }
  }

  @Test
  @DisplayName("JAVA-2: a context without any room for a tensor refuses it")
  void tinyContext() {
    try (Context context = Context.create(1)) {
      assertThatThrownBy(() -> context.newTensor(Type.F32, 1)).isInstanceOf(GgmlException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: sizes that cannot be are refused")
  void badSizes() {
    assertThatThrownBy(() -> Context.create(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Context.create(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Context.create(Long.MAX_VALUE)).isInstanceOf(GgmlException.class);
    assertThatThrownBy(() -> Context.forTensors(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Context.forGraph(0)).isInstanceOf(IllegalArgumentException.class);
    try (Context context = Context.forTensors(1)) {
      assertThatThrownBy(() -> context.newTensor(Type.F32, 0))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> context.newTensor(Type.F32, -3))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> context.newTensor(Type.Q8_0, 33))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("blocks of 32");
      assertThatThrownBy(() -> context.newTensor(Type.F32, Long.MAX_VALUE, 2))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: more memory than there is gives an exception")
  void noMemory() {
    try (Context context = Context.forTensors(1)) {
      context.newTensor(Type.F32, 1L << 30, 1L << 20);
      assertThatThrownBy(() -> context.allocate(cpu)).isInstanceOf(GgmlException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: a buffer gives all tensors of the context memory, views too")
  void allocate() {
    try (Context context = Context.forTensors(3)) {
      Tensor a = context.newTensor(Type.F32, 4);
      Tensor view = context.view1d(a, 2, 8);
      Buffer buffer = context.allocate(cpu);
      assertThat(buffer.size()).isGreaterThanOrEqualTo(16);
      assertThat(buffer.device()).isEqualTo(cpu);
      a.setFloats(1, 2, 3, 4);
      assertThat(view.getFloats()).containsExactly(3, 4);
      buffer.fill((byte) 0);
      assertThat(a.getFloats()).containsOnly(0);
      assertThatThrownBy(() -> context.allocate(cpu)).isInstanceOf(GgmlException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: a view of another context's tensor without memory cannot be allocated")
  void viewOfUnallocated() {
    try (Context first = Context.forTensors(1);
        Context second = Context.forTensors(2)) {
      Tensor a = first.newTensor(Type.F32, 4).name("far");
      second.newTensor(Type.F32, 4);
      second.view1d(a, 2, 0);
      assertThatThrownBy(() -> second.allocate(cpu))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("far");
    }
  }

  @ParameterizedTest(name = "JAVA-2: {0} has the sizes that ggml says")
  @EnumSource(Type.class)
  void typeSizes(Type type) {
    assertThat(ggml_h.ggml_type_size(type.value())).isEqualTo(type.byteSize());
    assertThat(ggml_h.ggml_blck_size(type.value())).isEqualTo(type.blockSize());
    assertThat(Type.of(type.value())).isEqualTo(type);
  }

  @Test
  @DisplayName("JAVA-2: values that are no type are refused")
  void noType() {
    assertThatThrownBy(() -> Type.of(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Type.of(4)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Type.of(1000)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("JAVA-2: a context for a graph of 2^30 nodes is as large as that, or has no memory")
  void hugeGraph() {
    long tensors = 2L * (1 << 30) * ggml_h.ggml_tensor_overhead();
    try (Context context = Context.forGraph(1 << 30)) {
      assertThat(context.freeBytes()).isGreaterThan(tensors);
    } catch (GgmlException e) {
      assertThat(e).hasMessageMatching("no memory for a context of \\d{12} bytes");
    }
  }
}
