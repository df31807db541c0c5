package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MiniLmTokenizerTest {

  // [CLS] is 101, [SEP] is 102; hello and world are lines 7592 and 2088 of BERT's vocabulary.
  @Test
  @DisplayName("A sentence becomes [CLS], its word pieces in lower case, [SEP], without padding")
  void encodesASentence() throws Exception {
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS)) {
      assertThat(tokenizer.encode(List.of("Hello world")).getFirst())
          .containsExactly(101, 7592, 2088, 102);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {3, 128, 512})
  @DisplayName("A longer text is cut to the given number of tokens, [SEP] kept")
  void truncates(int maxTokens) throws Exception {
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(maxTokens)) {
      int[] ids = tokenizer.encode("hello ".repeat(600));
      assertThat(ids).hasSize(maxTokens);
      assertThat(ids[maxTokens - 1]).isEqualTo(102);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "\t\n"})
  @DisplayName("A text without a token is refused")
  void refusesBlankText(String text) throws Exception {
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> tokenizer.encode(List.of(text)))
          .withMessageContaining("gives no token");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 2, 513})
  @DisplayName("A length that the model cannot serve is refused")
  void refusesImpossibleLength(int maxTokens) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new MiniLmTokenizer(maxTokens))
        .withMessage("maxTokens is " + maxTokens + ", expected 3 to 512");
  }
}
