package org.ggmlext.examples.minilm;

/**
 * How fast an encoder is.
 *
 * @param tokensPerSecond real tokens, padding not counted, in its fastest run
 */
record Speed(double tokensPerSecond) {
  // The JVM compiles Java kernels while they run; only then are they as fast as they get.
  private static final long WITHOUT_PROGRESS_NS = 3_000_000_000L;
  private static final long AT_MOST_NS = 20_000_000_000L;

  /** Encodes a batch again and again, until that has not become faster for some seconds. */
  static Speed measure(MiniLmEncoder encoder, TokenBatch batch) {
    long start = System.nanoTime();
    long fastest = Long.MAX_VALUE;
    long lastProgress = start;
    long now = start;
    while (now - lastProgress < WITHOUT_PROGRESS_NS && now - start < AT_MOST_NS) {
      long begin = System.nanoTime();
      encoder.encode(batch);
      now = System.nanoTime();
      if (now - begin < fastest - fastest / 50) {
        lastProgress = now;
      }
      fastest = Math.min(fastest, now - begin);
    }
    return new Speed(batch.tokens() / (fastest / 1e9));
  }
}
