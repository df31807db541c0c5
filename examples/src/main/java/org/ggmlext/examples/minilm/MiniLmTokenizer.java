package org.ggmlext.examples.minilm;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Text to MiniLM's word pieces: lower case, {@code [CLS]} first, {@code [SEP]} last, longer texts
 * cut. Thread-safe. Nothing is fetched: the tokenizer and its native library come out of jars.
 */
public final class MiniLmTokenizer implements AutoCloseable {

  static {
    // Keeps DJL from asking a cloud host who it is, and, where it sees a GPU, from downloading a
    // library that was built for it.
    setIfAbsent("ai.djl.offline", "true");
    setIfAbsent("OPT_OUT_TRACKING", "true");
    setIfAbsent("RUST_FLAVOR", "cpu");
  }

  private final HuggingFaceTokenizer tokenizer;

  // Closing waits for those who encode: the native library does not look whether it is still there.
  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private boolean closed;

  /**
   * @param maxTokens longest sequence, {@code [CLS]} and {@code [SEP]} included, 3 to {@link
   *     MiniLm#POSITIONS}; {@link MiniLm#DEFAULT_MAX_TOKENS} is what the model was trained with
   * @throws IOException if the tokenizer's file is not on the class path
   */
  public MiniLmTokenizer(int maxTokens) throws IOException {
    if (maxTokens < 3 || maxTokens > MiniLm.POSITIONS) {
      throw new IllegalArgumentException(
          "maxTokens is " + maxTokens + ", expected 3 to " + MiniLm.POSITIONS);
    }
    try (InputStream in = MiniLm.openTokenizer()) {
      tokenizer =
          HuggingFaceTokenizer.newInstance(
              in,
              Map.of(
                  "padding", "false",
                  "truncation", "true",
                  "maxLength", Integer.toString(maxTokens)));
    }
  }

  /**
   * The token ids of each text.
   *
   * @throws IllegalArgumentException if a text is empty or blank, or gives no token
   * @throws IllegalStateException if the tokenizer is closed
   */
  public List<int[]> encode(List<String> texts) {
    return texts.stream().map(this::encode).toList();
  }

  /** The token ids of one text; errors as in {@link #encode(List)}. */
  public int[] encode(String text) {
    long[] ids = idsOf(text);
    if (ids.length <= 2) {
      throw new IllegalArgumentException(
          "the text \"" + text + "\" gives no token, expected at least one word or sign");
    }
    return Arrays.stream(ids).mapToInt(Math::toIntExact).toArray();
  }

  private long[] idsOf(String text) {
    lock.readLock().lock();
    try {
      if (closed) {
        throw new IllegalStateException("the tokenizer is closed");
      }
      return tokenizer.encode(text, true, false).getIds();
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Harmless if done before. */
  @Override
  public void close() {
    lock.writeLock().lock();
    try {
      closed = true;
      tokenizer.close();
    } finally {
      lock.writeLock().unlock();
    }
  }

  private static void setIfAbsent(String property, String value) {
    if (System.getProperty(property) == null && System.getenv(property) == null) {
      System.setProperty(property, value);
    }
  }
}
