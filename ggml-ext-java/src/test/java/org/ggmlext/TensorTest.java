package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.bindings.ggml_h;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class TensorTest {
  private Context context;
  private Device cpu;

  @BeforeEach
  void open() {
    cpu = Ggml.load().device("CPU");
    context = Context.forTensors(16);
  }

  @AfterEach
  void close() {
    context.close();
  }

  @Test
  @DisplayName("JAVA-2: shapes and strides are ggml's, the fastest dimension first")
  void shapeAndStrides() {
    Tensor a = context.newTensor(Type.F32, 3, 2);
    assertThat(a.shape()).hasToString("[3, 2]");
    assertThat(new long[] {a.nb(0), a.nb(1), a.nb(2), a.nb(3)}).containsExactly(4, 12, 24, 24);
    assertThat(a.byteSize()).isEqualTo(24);
    assertThat(a).hasToString("F32 [3, 2]");
    assertThatThrownBy(() -> a.ne(4)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  @DisplayName("JAVA-2: contiguity and byte sizes agree with ggml")
  void agreesWithGgml() {
    Tensor a = context.newTensor(Type.F32, 4, 3, 2);
    Tensor q = context.newTensor(Type.Q4_0, 64, 3);
    for (Tensor tensor :
        new Tensor[] {
          a,
          q,
          context.permute(a, 0, 2, 1, 3),
          context.permute(a, 1, 0, 2, 3),
          context.view2d(a, 2, 3, 16, 4),
          context.view2d(a, 4, 1, 16, 16),
          context.transpose(context.newTensor(Type.F16, 5, 1)),
          context.view2d(q, 32, 2, 36, 18)
        }) {
      assertThat(tensor.byteSize()).isEqualTo(ggml_h.ggml_nbytes(tensor.handle()));
      assertThat(tensor.isContiguous()).isEqualTo(ggml_h.ggml_is_contiguous(tensor.handle()));
      assertThat(tensor.contiguousFrom(1)).isEqualTo(ggml_h.ggml_is_contiguous_1(tensor.handle()));
      assertThat(tensor.hasContiguousRows())
          .isEqualTo(ggml_h.ggml_is_contiguous_rows(tensor.handle()));
      assertThat(tensor.isTransposed()).isEqualTo(ggml_h.ggml_is_transposed(tensor.handle()));
    }
  }

  @Test
  @DisplayName("JAVA-2: names have up to 63 bytes")
  void names() {
    Tensor a = context.newTensor(Type.F32, 1);
    assertThat(a.name()).isEmpty();
    assertThat(a.name("gewicht-ß").name()).isEqualTo("gewicht-ß");
    String longest = "x".repeat(63);
    assertThat(a.name(longest).name()).isEqualTo(longest);
    assertThatThrownBy(() -> a.name("a\0b"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"a\\0b\"");
    assertThat(a.name()).isEqualTo(longest);
    assertThatThrownBy(() -> a.name("x".repeat(64)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("63");
  }

  @Test
  @DisplayName("JAVA-2: flags are kept")
  void flags() {
    Tensor a = context.newTensor(Type.F32, 1);
    assertThat(a.isInput()).isFalse();
    assertThat(a.asInput().asOutput().isInput()).isTrue();
    assertThat(a.isOutput()).isTrue();
    assertThat(a.op()).isEqualTo("NONE");
    assertThat(context.gelu(a).op()).isEqualTo("GELU");
  }

  @Test
  @DisplayName("JAVA-2: halves round to nearest even, NaN stays NaN")
  void halves() {
    Tensor half = context.newTensor(Type.F16, 4);
    Tensor brain = context.newTensor(Type.BF16, 4);
    context.allocate(cpu);
    float[] values = {1.00048828125f, 65520, Float.NaN, -0f};
    assertThat(half.setFloats(values).getFloats())
        .containsExactly(1, Float.POSITIVE_INFINITY, Float.NaN, -0f);
    assertThat(brain.setFloats(1.00390625f, 1.01171875f, Float.NaN, -2.5f).getFloats())
        .containsExactly(1, 1.015625f, Float.NaN, -2.5f);
  }

  @Test
  @DisplayName("JAVA-2: a permuted tensor is read in its own order, but not written as a whole")
  void permuted() {
    Tensor a = context.newTensor(Type.F32, 3, 2);
    Tensor transposed = context.transpose(a);
    Tensor ints = context.newTensor(Type.I32, 3, 2);
    Tensor intsTransposed = context.transpose(ints);
    context.allocate(cpu);
    a.setFloats(1, 2, 3, 4, 5, 6);
    ints.setInts(1, 2, 3, 4, 5, 6);
    assertThat(transposed.getFloats()).containsExactly(1, 4, 2, 5, 3, 6);
    assertThat(intsTransposed.getInts()).containsExactly(1, 4, 2, 5, 3, 6);
    assertThatThrownBy(() -> transposed.setFloats(1, 2, 3, 4, 5, 6))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("contiguous");
  }

  @Test
  @DisplayName("JAVA-2: data that do not fit are refused")
  void bounds() {
    Tensor a = context.newTensor(Type.F32, 3);
    context.allocate(cpu);
    assertThatThrownBy(() -> a.setFloats(1, 2)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> a.setInts(1, 2, 3)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(a::getLongs).isInstanceOf(IllegalArgumentException.class);
    MemorySegment eight = MemorySegment.ofArray(new byte[8]);
    a.setBytes(4, eight);
    assertThatThrownBy(() -> a.setBytes(5, eight)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> a.setBytes(-1, eight)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> a.getBytes(8, eight)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  @DisplayName("JAVA-2: a tensor without memory says so when it is read")
  void noMemory() {
    Tensor a = context.newTensor(Type.F32, 3).name("lonely");
    assertThat(a.isAllocated()).isFalse();
    assertThatThrownBy(a::getFloats)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("lonely");
  }

  @Test
  @DisplayName("JAVA-2: bytes are read as they were written")
  void bytes() {
    Tensor a = context.newTensor(Type.Q8_0, 32);
    context.allocate(cpu);
    byte[] block = new byte[34];
    block[0] = 1;
    block[33] = -7;
    assertThat(a.setBytes(block).getBytes()).isEqualTo(block);
  }

  @Test
  @DisplayName("JAVA-2: a tensor that no array holds is refused with its size and what to use")
  void largerThanArrays() {
    Tensor bytes = context.newTensor(Type.I8, 1L << 31);
    Tensor floats = context.newTensor(Type.F32, 1L << 31);
    Tensor halves = context.newTensor(Type.F16, 1L << 30);
    Tensor ints = context.newTensor(Type.I32, 1L << 29);
    Tensor longs = context.newTensor(Type.I64, 1L << 28);
    for (ThrowingCallable read :
        List.<ThrowingCallable>of(
            bytes::getBytes,
            floats::getFloats,
            halves::getFloats,
            ints::getInts,
            longs::getLongs)) {
      assertThatThrownBy(read)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("has 2147483648 ")
          .hasMessageContaining("an array holds at most 2147483639")
          .hasMessageContaining("getBytes(offset, target)");
    }
  }

  @Test
  @DisplayName("JAVA-2: a source that is null is named")
  void nullSource() {
    Tensor a = context.newTensor(Type.F32, 4);
    assertThatThrownBy(() -> context.sqr(null))
        .isInstanceOf(NullPointerException.class)
        .hasMessageContaining("null");
    assertThatThrownBy(() -> context.add(a, null))
        .isInstanceOf(NullPointerException.class)
        .hasMessageContaining("null");
  }
}
