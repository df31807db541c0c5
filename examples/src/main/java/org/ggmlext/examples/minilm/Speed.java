package org.ggmlext.examples.minilm;

/**
 * How fast an encoder is.
 *
 * @param tokensPerSecond real tokens, padding not counted
 */
record Speed(double tokensPerSecond) {
  private static final long WARM_UP_NANOS = 700_000_000L;
  private static final long MEASURED_NANOS = 1_000_000_000L;

  /** Encodes a batch again and again for some two seconds; the last one counts. */
  static Speed measure(MiniLmEncoder encoder, TokenBatch batch) {
    repeat(encoder, batch, WARM_UP_NANOS);
    return new Speed(repeat(encoder, batch, MEASURED_NANOS) * batch.tokens());
  }

  private static double repeat(MiniLmEncoder encoder, TokenBatch batch, long nanos) {
    long start = System.nanoTime();
    long elapsed = 0;
    int count = 0;
    while (elapsed < nanos) {
      encoder.encode(batch);
      count++;
      elapsed = System.nanoTime() - start;
    }
    return count / (elapsed / 1e9);
  }
}
