package org.ggmlext.internal;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.jspecify.annotations.Nullable;

/** The element types that safetensors names, and what ggml has for them. */
public enum SafetensorsDtype {
  F64(64, Type.F64),
  I64(64, Type.I64),
  U64(64, Type.I64),
  C64(64, Type.I64),
  F32(32, Type.F32),
  I32(32, Type.I32),
  U32(32, Type.I32),
  F16(16, Type.F16),
  BF16(16, Type.BF16),
  I16(16, Type.I16),
  U16(16, Type.I16),
  I8(8, Type.I8),
  U8(8, Type.I8),
  BOOL(8, Type.I8),
  F8_E4M3(8, Type.I8),
  F8_E5M2(8, Type.I8),
  F8_E8M0(8, Type.I8),
  F8_E4M3FNUZ(8, Type.I8),
  F8_E5M2FNUZ(8, Type.I8),
  F6_E2M3(6, Type.I8),
  F6_E3M2(6, Type.I8),
  F4(4, Type.I8);

  private final int bits;
  private final Type type;

  SafetensorsDtype(int bits, Type type) {
    this.bits = bits;
    this.type = type;
  }

  /** The one of this name, or null. */
  public static @Nullable SafetensorsDtype find(String name) {
    return Arrays.stream(values()).filter(d -> d.name().equals(name)).findFirst().orElse(null);
  }

  /** All names, to be listed in a message. */
  public static String names() {
    return Arrays.stream(values()).map(SafetensorsDtype::name).collect(Collectors.joining(", "));
  }

  /** Bits of an element. */
  public int bits() {
    return bits;
  }

  /** The type of the same size that a tensor has in ggml: the same type, or an integer. */
  public Type type() {
    return type;
  }

  /**
   * Bytes of a tensor.
   *
   * @throws IllegalArgumentException if a size is negative, there are more bits than a long can
   *     count, or the elements do not fill whole bytes
   */
  public long byteSize(List<Long> sizes) {
    long count = bits;
    for (long size : sizes) {
      if (size < 0) {
        throw new IllegalArgumentException("a shape has no negative size: " + sizes);
      }
      try {
        count = Math.multiplyExact(count, size);
      } catch (ArithmeticException e) {
        throw new IllegalArgumentException(
            sizes + " has more elements of " + bits + " bits than a long can count", e);
      }
    }
    if (count % Byte.SIZE != 0) {
      throw new IllegalArgumentException(
          "%s of %d bits each are %d bits, no whole number of bytes".formatted(sizes, bits, count));
    }
    return count / Byte.SIZE;
  }

  /**
   * The shape that a tensor has in ggml: the sizes reversed, of more than four the slowest ones as
   * one; elements of less than eight bits are all their bytes in one row.
   *
   * @param sizes those that {@link #byteSize} has accepted
   * @throws IllegalArgumentException if a long cannot count the elements of some dimensions
   */
  public Shape shape(List<Long> sizes) {
    if (bits < Byte.SIZE) {
      return Shape.of(byteSize(sizes));
    }
    long[] ne = {1, 1, 1, 1};
    for (int i = 0; i < sizes.size(); i++) {
      int dim = Math.min(sizes.size() - 1 - i, Shape.DIMS - 1);
      ne[dim] *= sizes.get(i);
    }
    return Shape.of(ne);
  }
}
