package org.ggmlext.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.onnx.allminilml6v2.AllMiniLmL6V2EmbeddingModel;
import dev.langchain4j.rag.content.Content;
import dev.langchain4j.rag.content.ContentMetadata;
import dev.langchain4j.rag.content.retriever.ContentRetriever;
import dev.langchain4j.rag.query.Query;
import java.util.List;
import org.ggmlext.examples.minilm.Corpus;
import org.ggmlext.examples.minilm.MiniLmEmbeddingModel;
import org.ggmlext.examples.minilm.MiniLmOptions;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class RetrievalTest {
  private static final List<String> QUESTIONS =
      List.of(
          "Who pays for damage by oil spills at sea?",
          "How should the budget of the Union be controlled?",
          "What is done about unemployment?",
          "Are animals transported humanely?",
          "Which countries may join next?",
          "Is food safe to eat?",
          "How are the rights of women protected?",
          "What happens to people who seek asylum?",
          "Should rail freight be opened to competition?",
          "When will the vote take place?");

  private static List<String> texts(List<Content> found) {
    return found.stream().map(content -> content.textSegment().text()).toList();
  }

  private static double score(Content content) {
    return (Double) content.metadata().get(ContentMetadata.SCORE);
  }

  @Test
  @DisplayName(
      "langchain4j: with our model in place of theirs, a retrieval program answers the same")
  void sameAnswers() throws Exception {
    List<String> passages = Corpus.sentences(150);
    EmbeddingModel theirs = new AllMiniLmL6V2EmbeddingModel();
    ContentRetriever expected = Retrieval.retriever(theirs, passages);
    try (MiniLmEmbeddingModel ours =
        MiniLmEmbeddingModel.load(MiniLmOptions.defaults().withThreads(1))) {
      ContentRetriever actual = Retrieval.retriever(ours, passages);
      for (String question : QUESTIONS) {
        List<Content> wanted = expected.retrieve(Query.from(question));
        List<Content> found = actual.retrieve(Query.from(question));
        assertThat(wanted).as(question).hasSize(3);
        assertThat(texts(found)).as(question).isEqualTo(texts(wanted));
        for (int i = 0; i < 3; i++) {
          assertThat(score(found.get(i)))
              .as(question)
              .isCloseTo(score(wanted.get(i)), within(1e-4));
        }
      }
    }
  }

  @Test
  @DisplayName("langchain4j: the program of the page finds the passage that answers the question")
  void answers() throws Exception {
    List<String> passages =
        List.of(
            "The kitchen closes at nine in the evening.",
            "The pool is on the roof and is heated in winter.",
            "Dogs are welcome, if they are kept on a leash.");
    assertThat(Retrieval.answer(passages, "May I bring my pet?")).isEqualTo(passages.get(2));
  }
}
