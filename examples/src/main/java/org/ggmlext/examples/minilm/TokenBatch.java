package org.ggmlext.examples.minilm;

import java.util.Arrays;
import java.util.List;

/**
 * Token sequences of different lengths, padded to the longest.
 *
 * @param length tokens a sequence, padding included
 * @param lengths real tokens of each sequence, at least 1
 * @param ids {@code length} token ids for each sequence, one sequence after the other; not copied
 */
public record TokenBatch(int length, int[] lengths, int[] ids) {

  /** The token that fills a sequence; what it is does not matter, since it is masked. */
  static final int PAD = 0;

  /**
   * Pads {@code sequences}.
   *
   * @throws IllegalArgumentException if there is no sequence, or one is empty, longer than {@link
   *     MiniLm#POSITIONS}, or holds a token outside the vocabulary
   */
  public static TokenBatch of(List<int[]> sequences) {
    if (sequences.isEmpty()) {
      throw new IllegalArgumentException("a batch of 0 sequences, expected at least 1");
    }
    int[] lengths = sequences.stream().mapToInt(sequence -> sequence.length).toArray();
    int length = Arrays.stream(lengths).max().orElseThrow();
    int[] ids = new int[Math.multiplyExact(length, lengths.length)];
    Arrays.fill(ids, PAD);
    for (int s = 0; s < lengths.length; s++) {
      check(s, sequences.get(s));
      System.arraycopy(sequences.get(s), 0, ids, s * length, lengths[s]);
    }
    return new TokenBatch(length, lengths, ids);
  }

  private static void check(int index, int[] sequence) {
    if (sequence.length < 1 || sequence.length > MiniLm.POSITIONS) {
      throw new IllegalArgumentException(
          "sequence "
              + index
              + " has "
              + sequence.length
              + " tokens, expected 1 to "
              + MiniLm.POSITIONS);
    }
    for (int id : sequence) {
      if (id < 0 || id >= MiniLm.VOCABULARY) {
        throw new IllegalArgumentException(
            "sequence "
                + index
                + " holds the token "
                + id
                + ", expected 0 to "
                + (MiniLm.VOCABULARY - 1));
      }
    }
  }

  /** Number of sequences. */
  public int sequences() {
    return lengths.length;
  }

  /** Number of real tokens. */
  public int tokens() {
    return Arrays.stream(lengths).sum();
  }

  /** Whether a sequence is shorter than {@link #length}. */
  boolean padded() {
    return tokens() < length * sequences();
  }

  /**
   * What is added to attention scores, {@code [key, query, 1, sequence]} in ggml's order: 0 for
   * real keys, negative infinity for padding.
   */
  float[] attentionMask() {
    float[] mask = new float[Math.multiplyExact(length * length, sequences())];
    for (int row = 0; row < length * sequences(); row++) {
      int real = lengths[row / length];
      Arrays.fill(mask, row * length + real, (row + 1) * length, Float.NEGATIVE_INFINITY);
    }
    return mask;
  }

  /** Each token's weight in the mean of its sequence, 0 for padding. */
  float[] meanWeights() {
    float[] weights = new float[length * sequences()];
    for (int s = 0; s < sequences(); s++) {
      Arrays.fill(weights, s * length, s * length + lengths[s], 1f / lengths[s]);
    }
    return weights;
  }
}
