package org.ggmlext.examples.minilm;

/**
 * How fast an encoder is.
 *
 * @param tokensPerSecond real tokens, padding not counted, in its fastest run
 */
record Speed(double tokensPerSecond) {
  private static final long NANOS = 2_000_000_000L;

  /** Encodes a batch again and again for two seconds, and at least three times. */
  static Speed measure(MiniLmEncoder encoder, TokenBatch batch) {
    long start = System.nanoTime();
    long fastest = Long.MAX_VALUE;
    for (int run = 0; run < 3 || System.nanoTime() - start < NANOS; run++) {
      long begin = System.nanoTime();
      encoder.encode(batch);
      fastest = Math.min(fastest, System.nanoTime() - begin);
    }
    return new Speed(batch.tokens() / (fastest / 1e9));
  }
}
