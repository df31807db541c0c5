package org.ggmlext.examples.minilm;

/**
 * How {@link MiniLmEmbeddingModel} works.
 *
 * @param maxTokens longest text in tokens, {@code [CLS]} and {@code [SEP]} included; the rest is
 *     cut
 * @param batchSize most texts that are computed at once
 * @param threads threads that compute; more than cores count as cores
 * @param extensions whether the extensions of {@link MiniLmExtensions} are used
 * @param int8 whether dense layers are computed in INT8, for which extensions must be used: faster,
 *     and not quite the same embeddings
 */
public record MiniLmOptions(
    int maxTokens, int batchSize, int threads, boolean extensions, boolean int8) {

  public MiniLmOptions {
    if (batchSize < 1) {
      throw new IllegalArgumentException("batchSize is " + batchSize + ", expected at least 1");
    }
    if (threads < 1) {
      throw new IllegalArgumentException("threads is " + threads + ", expected at least 1");
    }
    if (int8 && !extensions) {
      throw new IllegalArgumentException("int8 is on, but extensions, which compute it, are off");
    }
  }

  /** Texts cut as the model was trained, 32 at once, a thread for each core, extensions on, F32. */
  public static MiniLmOptions defaults() {
    return new MiniLmOptions(
        MiniLm.DEFAULT_MAX_TOKENS, 32, Runtime.getRuntime().availableProcessors(), true, false);
  }

  public MiniLmOptions withMaxTokens(int count) {
    return new MiniLmOptions(count, batchSize, threads, extensions, int8);
  }

  public MiniLmOptions withBatchSize(int count) {
    return new MiniLmOptions(maxTokens, count, threads, extensions, int8);
  }

  public MiniLmOptions withThreads(int count) {
    return new MiniLmOptions(maxTokens, batchSize, count, extensions, int8);
  }

  public MiniLmOptions withExtensions(boolean on) {
    return new MiniLmOptions(maxTokens, batchSize, threads, on, int8);
  }

  public MiniLmOptions withInt8(boolean on) {
    return new MiniLmOptions(maxTokens, batchSize, threads, extensions, on);
  }
}
