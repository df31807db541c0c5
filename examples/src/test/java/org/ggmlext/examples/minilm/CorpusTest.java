package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CorpusTest {

  @Test
  @DisplayName("The corpus has 1,200 different English sentences of many lengths")
  void corpusIsLargeAndRagged() throws Exception {
    List<String> sentences = Corpus.sentences(1200);

    assertThat(sentences).hasSize(1200).doesNotHaveDuplicates();
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.POSITIONS)) {
      List<Integer> lengths = tokenizer.encode(sentences).stream().map(ids -> ids.length).toList();
      assertThat(lengths).anyMatch(n -> n < 12).anyMatch(n -> n > 100);
    }
  }

  @Test
  @DisplayName("A text is split at the ends of its sentences")
  void splitsSentences() {
    assertThat(Corpus.split("  A cat sits. Does a dog sleep?  Yes, the dog sleeps! "))
        .containsExactly("A cat sits.", "Does a dog sleep?", "Yes, the dog sleeps!");
  }
}
