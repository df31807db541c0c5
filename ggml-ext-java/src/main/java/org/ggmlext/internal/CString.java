package org.ggmlext.internal;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/** Strings on their way to C, which ends them at the first zero character. */
public final class CString {
  /** Characters that are shown on either side of the zero. */
  private static final int SHOWN = 40;

  private CString() {}

  /** Whether C would get all of a string. */
  public static boolean isWhole(String value) {
    return value.indexOf('\0') < 0;
  }

  /**
   * A string for C.
   *
   * @param what it is, to begin a message with
   * @throws IllegalArgumentException if it has a zero character
   */
  public static MemorySegment allocate(Arena arena, String what, String value) {
    int zero = Objects.requireNonNull(value, what).indexOf('\0');
    if (zero >= 0) {
      throw new IllegalArgumentException(
          "%s has a zero character at index %d, where C would end it: \"%s\""
              .formatted(what, zero, around(value, zero)));
    }
    return arena.allocateFrom(value);
  }

  /** A part of a string, with its zeros made visible. */
  private static String around(String value, int zero) {
    int begin = Math.max(0, zero - SHOWN);
    int end = Math.min(value.length(), zero + SHOWN);
    String part = value.substring(begin, end).replace("\0", "\\0");
    return (begin > 0 ? "..." : "") + part + (end < value.length() ? "..." : "");
  }
}
