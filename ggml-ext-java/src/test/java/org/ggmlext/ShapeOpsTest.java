package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ShapeOpsTest {
  @Test
  @DisplayName("JAVA-2: reshape keeps the data, permute and transpose reorder the dimensions")
  void reorder() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(6), 1, 2, 3, 4, 5, 6);
      Tensor matrix = run.context().reshape(a, 3, 2);
      assertThat(run.floats(c -> c.cont(c.transpose(matrix)))).containsExactly(1, 4, 2, 5, 3, 6);
      Tensor permuted = run.context().permute(matrix, 2, 0, 1, 3);
      assertThat(permuted.shape()).isEqualTo(Shape.of(2, 1, 3));
      assertThat(run.floats(c -> c.cont(permuted))).containsExactly(1, 4, 2, 5, 3, 6);
      assertThat(run.floats(c -> c.cont(c.transpose(matrix), 6))).containsExactly(1, 4, 2, 5, 3, 6);
    }
  }

  @Test
  @DisplayName("JAVA-2: views look at a part of the data")
  void views() {
    try (GraphRunner run = new GraphRunner()) {
      float[] values = new float[24];
      for (int i = 0; i < values.length; i++) {
        values[i] = i;
      }
      Tensor a = run.input(Shape.of(4, 3, 2), values);
      assertThat(run.floats(c -> c.cont(c.view1d(a, 2, 12)))).containsExactly(3, 4);
      assertThat(run.floats(c -> c.cont(c.view2d(a, 2, 2, 16, 4)))).containsExactly(1, 2, 5, 6);
      assertThat(run.floats(c -> c.cont(c.view3d(a, 1, 2, 2, 16, 48, 8))))
          .containsExactly(2, 6, 14, 18);
      assertThat(run.floats(c -> c.cont(c.view4d(a, Shape.of(2, 1, 1, 2), 16, 16, 48, 0))))
          .containsExactly(0, 1, 12, 13);
    }
  }

  @Test
  @DisplayName("JAVA-2: a view of a view counts from that view")
  void viewOfView() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(6), 1, 2, 3, 4, 5, 6);
      Tensor tail = run.context().view1d(a, 4, 8);
      assertThat(run.floats(c -> c.cont(c.view1d(tail, 2, 4)))).containsExactly(4, 5);
      assertThatThrownBy(() -> run.context().view1d(tail, 4, 4))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("reaches to byte 20");
    }
  }

  @Test
  @DisplayName("JAVA-2: casts round to the type and come back")
  void casts() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2), 1.0009765f, -3.75f);
      assertThat(run.floats(c -> c.cast(a, Type.F16))).containsExactly(1.0009766f, -3.75f);
      assertThat(run.floats(c -> c.cast(a, Type.BF16))).containsExactly(1, -3.75f);
      assertThat(run.compute(run.context().cast(a, Type.I32)).getInts()).containsExactly(1, -3);
    }
  }

  @Test
  @DisplayName("JAVA-2: cpy writes over its target and looks at it")
  void cpy() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2), 7, 8);
      Tensor target = run.input(Shape.of(2), 0, 0).asOutput();
      assertThat(run.floats(c -> c.cpy(a, target))).containsExactly(7, 8);
      assertThat(target.getFloats()).containsExactly(7, 8);
      assertThat(run.floats(c -> c.dup(a))).containsExactly(7, 8);
    }
  }

  @Test
  @DisplayName("JAVA-2: concat puts tensors together along any dimension")
  void concat() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2, 2), 1, 2, 3, 4);
      Tensor b = run.input(Shape.of(2, 2), 5, 6, 7, 8);
      assertThat(run.floats(c -> c.concat(a, b, 0))).containsExactly(1, 2, 5, 6, 3, 4, 7, 8);
      assertThat(run.floats(c -> c.concat(a, b, 1))).containsExactly(1, 2, 3, 4, 5, 6, 7, 8);
      assertThat(run.context().concat(a, b, 3).shape()).isEqualTo(Shape.of(2, 2, 1, 2));
    }
  }

  @Test
  @DisplayName("JAVA-2: repeat and pad enlarge")
  void repeatAndPad() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2), 1, 2);
      Tensor like = run.input(Shape.of(4, 2), 0, 0, 0, 0, 0, 0, 0, 0);
      assertThat(run.floats(c -> c.repeat(a, like))).containsExactly(1, 2, 1, 2, 1, 2, 1, 2);
      assertThat(run.floats(c -> c.repeat(a, Shape.of(2, 2)))).containsExactly(1, 2, 1, 2);
      assertThat(run.floats(c -> c.pad(a, 1, 1, 0, 0))).containsExactly(1, 2, 0, 0, 0, 0);
    }
  }

  @Test
  @DisplayName("JAVA-2: getRows gathers rows, of halves as floats")
  void getRows() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Type.F16, Shape.of(2, 3), 1, 2, 3, 4, 5, 6);
      Tensor ids = run.ints(Shape.of(4), 2, 0, 0, 1);
      Tensor rows = run.compute(run.context().getRows(a, ids));
      assertThat(rows.type()).isEqualTo(Type.F32);
      assertThat(rows.getFloats()).containsExactly(5, 6, 1, 2, 1, 2, 3, 4);
    }
  }

  @Test
  @DisplayName("JAVA-2: setRows scatters rows into its target")
  void setRows() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2, 3), 0, 0, 0, 0, 0, 0).asOutput();
      Tensor b = run.input(Shape.of(2, 2), 1, 2, 3, 4);
      try (Context own = Context.forTensors(1)) {
        Tensor wide = own.newTensor(Type.I64, 2);
        own.allocate(Ggml.get().device("CPU"));
        wide.setLongs(2, 0);
        assertThat(wide.getLongs()).containsExactly(2, 0);
        Tensor result = run.compute(run.context().setRows(a, b, wide));
        assertThat(result.getFloats()).containsExactly(3, 4, 0, 0, 1, 2);
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: a row index out of range is refused when the graph is computed")
  void indexOutOfRange() {
    for (int wrong : new int[] {-1, 3, Integer.MAX_VALUE}) {
      try (GraphRunner run = new GraphRunner()) {
        Tensor a = run.input(Shape.of(2, 3), 1, 2, 3, 4, 5, 6);
        Tensor ids = run.ints(Shape.of(2), 0, wrong).name("tokens");
        Tensor part = run.context().view1d(ids, 1, 4);
        assertThatThrownBy(() -> run.compute(run.context().getRows(a, part)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("GET_ROWS")
            .hasMessageContaining("is " + wrong + ", not 0 to 2");
        Tensor rows = run.input(Shape.of(2, 2), 1, 2, 3, 4);
        assertThatThrownBy(() -> run.compute(run.context().setRows(a, rows, ids)))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("SET_ROWS")
            .hasMessageContaining("tokens");
      }
    }
  }
}
