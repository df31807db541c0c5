package org.ggmlext;

/** Which elements of a row {@link AttentionOps#rope} rotates together. */
public enum RopeMode {
  /** Neighbours: elements 2i and 2i + 1. */
  NORMAL(0),
  /** Halves: elements i and i + n/2. */
  NEOX(2);

  private final int value;

  RopeMode(int value) {
    this.value = value;
  }

  /** The value in ggml. */
  public int value() {
    return value;
  }
}
