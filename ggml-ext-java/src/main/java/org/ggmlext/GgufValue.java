package org.ggmlext;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A value in the metadata of a GGUF file.
 *
 * @param type what it is stored as
 * @param value a {@link Long} for all integers (unsigned 64-bit ones that do not fit are negative),
 *     a {@link Float}, a {@link Double}, a {@link Boolean}, a {@link String}, or for an array a
 *     list of such values
 * @param elementType the type of an array's elements; else the type itself
 */
public record GgufValue(GgufType type, Object value, GgufType elementType) {
  /** An unsigned 32-bit integer, what most counts and sizes are stored as. */
  public static GgufValue uint32(long value) {
    return integer(GgufType.UINT32, value);
  }

  /** A signed 32-bit integer. */
  public static GgufValue int32(int value) {
    return integer(GgufType.INT32, value);
  }

  /** A signed 64-bit integer. */
  public static GgufValue int64(long value) {
    return integer(GgufType.INT64, value);
  }

  /**
   * An integer of any type.
   *
   * @throws IllegalArgumentException if the type is none for integers, or cannot hold the value
   */
  public static GgufValue integer(GgufType type, long value) {
    boolean fits =
        switch (type) {
          case UINT8 -> value >= 0 && value <= 0xff;
          case INT8 -> value == (byte) value;
          case UINT16 -> value >= 0 && value <= 0xffff;
          case INT16 -> value == (short) value;
          case UINT32 -> value >= 0 && value <= 0xffff_ffffL;
          case INT32 -> value == (int) value;
          case UINT64, INT64 -> true;
          default -> throw new IllegalArgumentException(type + " is no type of integers");
        };
    if (!fits) {
      throw new IllegalArgumentException("%d does not fit into %s".formatted(value, type));
    }
    return new GgufValue(type, value, type);
  }

  /** A float. */
  public static GgufValue float32(float value) {
    return new GgufValue(GgufType.FLOAT32, value, GgufType.FLOAT32);
  }

  /** A double. */
  public static GgufValue float64(double value) {
    return new GgufValue(GgufType.FLOAT64, value, GgufType.FLOAT64);
  }

  /** A truth value. */
  public static GgufValue bool(boolean value) {
    return new GgufValue(GgufType.BOOL, value, GgufType.BOOL);
  }

  /** A string. */
  public static GgufValue string(String value) {
    return new GgufValue(GgufType.STRING, value, GgufType.STRING);
  }

  /** An array of strings. */
  public static GgufValue strings(List<String> values) {
    return new GgufValue(GgufType.ARRAY, List.copyOf(values), GgufType.STRING);
  }

  /** An array of signed 32-bit integers. */
  public static GgufValue ints(int... values) {
    return new GgufValue(
        GgufType.ARRAY,
        Arrays.stream(values).mapToObj(value -> (Object) (long) value).toList(),
        GgufType.INT32);
  }

  /** An array of floats. */
  public static GgufValue floats(float... values) {
    List<Float> list = new ArrayList<>(values.length);
    for (float value : values) {
      list.add(value);
    }
    return new GgufValue(GgufType.ARRAY, List.copyOf(list), GgufType.FLOAT32);
  }
}
