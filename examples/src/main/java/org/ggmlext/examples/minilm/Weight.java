package org.ggmlext.examples.minilm;

/**
 * One F32 weight in ggml's order: {@code ne0} is the fastest dimension.
 *
 * @param name what the model file calls it
 * @param ne0 length of a row
 * @param ne1 number of rows; 1 for a vector
 * @param data {@code ne0 * ne1} values, not copied: the owner must not change them
 */
public record Weight(String name, int ne0, int ne1, float[] data) {
  public Weight {
    if (ne0 < 1 || ne1 < 1 || (long) ne0 * ne1 != data.length) {
      throw new IllegalArgumentException(
          "weight "
              + name
              + ": ["
              + ne0
              + ", "
              + ne1
              + "] does not hold "
              + data.length
              + " values");
    }
  }
}
