package org.ggmlext.examples.docs;

import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.rag.content.retriever.ContentRetriever;
import dev.langchain4j.rag.content.retriever.EmbeddingStoreContentRetriever;
import dev.langchain4j.rag.query.Query;
import dev.langchain4j.store.embedding.inmemory.InMemoryEmbeddingStore;
import java.io.IOException;
import java.util.List;
import org.ggmlext.examples.minilm.MiniLmEmbeddingModel;

/** The retrieval program that docs/langchain4j.md shows; RetrievalTest runs it. */
final class Retrieval {
  private Retrieval() {}

  // docs: retriever
  /** Finds the passages that are nearest in meaning to a question. */
  static ContentRetriever retriever(EmbeddingModel model, List<String> passages) {
    List<TextSegment> segments = passages.stream().map(TextSegment::from).toList();
    InMemoryEmbeddingStore<TextSegment> store = new InMemoryEmbeddingStore<>();
    store.addAll(model.embedAll(segments).content(), segments);
    return EmbeddingStoreContentRetriever.builder()
        .embeddingStore(store)
        .embeddingModel(model)
        .maxResults(3)
        .build();
  }

  // docs: end

  static String answer(List<String> passages, String question) throws IOException {
    // docs: swap
    try (MiniLmEmbeddingModel model = MiniLmEmbeddingModel.load()) {
      return retriever(model, passages)
          .retrieve(Query.from(question))
          .getFirst()
          .textSegment()
          .text();
    }
    // docs: end
  }
}
