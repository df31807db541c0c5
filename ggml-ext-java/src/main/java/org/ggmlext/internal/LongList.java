package org.ggmlext.internal;

import java.util.Arrays;

/** A growing list of longs: addresses of tensors. */
public final class LongList {
  private long[] values = new long[16];
  private int size;

  /** Number of values. */
  public int size() {
    return size;
  }

  /** The value at an index. */
  public long get(int index) {
    return values[index];
  }

  /** Replaces the value at an index. */
  public void set(int index, long value) {
    values[index] = value;
  }

  /** Adds a value at the end. */
  public void add(long value) {
    if (size == values.length) {
      values = Arrays.copyOf(values, 2 * size);
    }
    values[size++] = value;
  }

  /** Adds all values of another list at the end. */
  public void addAll(LongList other) {
    for (int i = 0; i < other.size; i++) {
      add(other.values[i]);
    }
  }

  /** Removes the last value and gives it. */
  public long removeLast() {
    return values[--size];
  }

  /** A list of the same values. */
  public LongList copy() {
    LongList copy = new LongList();
    copy.values = Arrays.copyOf(values, Math.max(1, size));
    copy.size = size;
    return copy;
  }
}
