package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;

import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.onnx.allminilml6v2.AllMiniLmL6V2EmbeddingModel;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class OnnxOracleTest {

  @Test
  @DisplayName("Tokens, truncation, pooling and norm are those of langchain4j's own model")
  void oracleEqualsLangchain4j() throws Exception {
    List<String> sentences = Corpus.sentences(20);
    List<String> texts =
        List.of("cat", "Zürich, 2026: 50 % off!", "日本語 \uD83D\uDE00", String.join(" ", sentences));
    EmbeddingModel theirs = new AllMiniLmL6V2EmbeddingModel();

    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS);
        OnnxOracle oracle = new OnnxOracle()) {
      for (String text : texts) {
        double[] ours = oracle.embed(tokenizer.encode(text));
        assertThat(OnnxOracle.cosine(theirs.embed(text).content().vector(), ours))
            .as(text)
            .isGreaterThan(0.999999);
      }
    }
  }
}
