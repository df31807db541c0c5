package org.ggmlext.examples.minilm;

/**
 * How {@link MiniLmEmbeddingModel} works.
 *
 * @param maxTokens longest text in tokens, {@code [CLS]} and {@code [SEP]} included; the rest is
 *     cut
 * @param batchSize most texts that are computed at once
 * @param extensions whether the extensions of {@link MiniLmExtensions} are used
 */
public record MiniLmOptions(int maxTokens, int batchSize, boolean extensions) {

  public MiniLmOptions {
    if (batchSize < 1) {
      throw new IllegalArgumentException("batchSize is " + batchSize + ", expected at least 1");
    }
  }

  /** Texts cut as the model was trained, 32 at once, extensions on. */
  public static MiniLmOptions defaults() {
    return new MiniLmOptions(MiniLm.DEFAULT_MAX_TOKENS, 32, true);
  }

  public MiniLmOptions withMaxTokens(int count) {
    return new MiniLmOptions(count, batchSize, extensions);
  }

  public MiniLmOptions withBatchSize(int count) {
    return new MiniLmOptions(maxTokens, count, extensions);
  }

  public MiniLmOptions withExtensions(boolean on) {
    return new MiniLmOptions(maxTokens, batchSize, on);
  }
}
