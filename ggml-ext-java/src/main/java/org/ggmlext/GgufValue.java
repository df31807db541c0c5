package org.ggmlext;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

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
  /**
   * Checks that the value is of its type.
   *
   * @throws IllegalArgumentException if it is not, or does not fit into it; or if an array holds
   *     arrays, or anything but an array has an element type of its own
   */
  public GgufValue {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(value, "value");
    Objects.requireNonNull(elementType, "elementType");
    if (type == GgufType.ARRAY) {
      if (elementType == GgufType.ARRAY) {
        throw new IllegalArgumentException("GGUF has no arrays of arrays");
      }
      if (!(value instanceof List<?> list)) {
        throw wrongClass(type, value);
      }
      value = List.copyOf(list);
      for (Object element : (List<?>) value) {
        check(elementType, element);
      }
    } else {
      if (elementType != type) {
        throw new IllegalArgumentException(
            "a single %s has no elements of type %s".formatted(type, elementType));
      }
      check(type, value);
    }
  }

  private static void check(GgufType type, Object value) {
    if (!type.valueClass().isInstance(value)) {
      throw wrongClass(type, value);
    }
    if (value instanceof Long number && !fits(type, number)) {
      throw new IllegalArgumentException("%d does not fit into %s".formatted(number, type));
    }
  }

  private static IllegalArgumentException wrongClass(GgufType type, Object value) {
    return new IllegalArgumentException(
        "%s holds a %s, not the %s \"%s\""
            .formatted(
                type, type.valueClass().getSimpleName(), value.getClass().getSimpleName(), value));
  }

  private static boolean fits(GgufType type, long value) {
    return switch (type) {
      case UINT8 -> value >= 0 && value <= 0xff;
      case INT8 -> value == (byte) value;
      case UINT16 -> value >= 0 && value <= 0xffff;
      case INT16 -> value == (short) value;
      case UINT32 -> value >= 0 && value <= 0xffff_ffffL;
      case INT32 -> value == (int) value;
      default -> true;
    };
  }

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
    if (type.valueClass() != Long.class) {
      throw new IllegalArgumentException(type + " is no type of integers");
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
