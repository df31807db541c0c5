package org.ggmlext.examples.minilm;

import java.io.PrintStream;
import java.util.List;

/** A table of the cosines between sentences. */
final class SimilarityTable {
  private static final int LONGEST = 40;

  private SimilarityTable() {}

  /**
   * Prints the table.
   *
   * @param embeddings of length 1, one a sentence
   */
  static void print(List<String> sentences, float[][] embeddings, PrintStream out) {
    int width = sentences.stream().mapToInt(sentence -> shorten(sentence).length()).max().orElse(0);
    out.print(" ".repeat(width + 5));
    for (int column = 0; column < embeddings.length; column++) {
      out.printf("%7s", "[" + (column + 1) + "]");
    }
    out.println();
    for (int row = 0; row < embeddings.length; row++) {
      out.printf("%4s %-" + width + "s", "[" + (row + 1) + "]", shorten(sentences.get(row)));
      for (float[] other : embeddings) {
        out.printf("%7.3f", dot(embeddings[row], other));
      }
      out.println();
    }
  }

  private static String shorten(String sentence) {
    return sentence.length() <= LONGEST ? sentence : sentence.substring(0, LONGEST - 3) + "...";
  }

  private static double dot(float[] a, float[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += (double) a[i] * b[i];
    }
    return sum;
  }
}
