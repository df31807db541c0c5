package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class DemoTest {

  @Test
  @DisplayName(
      "The demo prints similarities, what ran on which kernel, and the speed with extensions off"
          + " and on")
  void printsItsTables() {
    String printed = run("a cat sits", "a dog sleeps", "stocks fell");

    assertThat(printed)
        .containsPattern("\\[1] a cat sits +1[.,]000")
        .containsPattern("MUL_MAT +6 +cpu.mul_mat_bias\\s")
        .containsPattern("MUL_MAT +6 +cpu.mul_mat_bias_gelu_erf")
        .containsPattern("MUL_MAT +12 +cpu.mul_mat_f32")
        .containsPattern("FLASH_ATTN_EXT +6 +cpu.flash_attn_ext")
        .containsPattern("minilm.pool_normalize.v1 +1 +minilm.pool_normalize.java")
        .containsPattern("minilm.residual_norm.v1 +12 +minilm.residual_norm.c")
        .containsPattern("extensions off +\\S+ tokens/s")
        .containsPattern("extensions on +\\S+ tokens/s");
  }

  private static String run(String... sentences) {
    PrintStream before = System.out;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      Demo.main(sentences);
    } finally {
      System.setOut(before);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }
}
