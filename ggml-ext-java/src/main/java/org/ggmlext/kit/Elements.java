package org.ggmlext.kit;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.internal.Bfloat16;

/** Elements of tensors as doubles, for the types whose blocks have one element. */
final class Elements {
  private Elements() {}

  /** The elements one after the other, in ggml's order, without gaps. */
  static byte[] packed(Tensor tensor) {
    byte[] all = tensor.getBytes();
    if (tensor.isContiguous()) {
      return all;
    }
    Type type = tensor.type();
    if (type.isQuantized()) {
      throw new IllegalArgumentException(
          "%s is not contiguous: quantised outputs are read only where they are".formatted(tensor));
    }
    int size = type.byteSize();
    byte[] packed = new byte[Math.toIntExact(tensor.elements() * size)];
    int[] at = {0};
    forEach(
        tensor,
        offset -> {
          System.arraycopy(all, offset, packed, at[0], size);
          at[0] += size;
        });
    return packed;
  }

  /** The values of packed elements. */
  static double[] values(Type type, byte[] packed) {
    double[] values = new double[packed.length / type.byteSize()];
    MemorySegment segment = MemorySegment.ofArray(packed);
    for (int i = 0; i < values.length; i++) {
      values[i] = get(type, segment, (long) i * type.byteSize());
    }
    return values;
  }

  static double[] values(Tensor tensor) {
    return values(tensor.type(), packed(tensor));
  }

  /**
   * Writes values, in ggml's order, to where a view has its elements in the bytes of its storage.
   */
  static void scatter(Tensor view, long viewOffset, double[] values, byte[] storage) {
    MemorySegment segment = MemorySegment.ofArray(storage);
    int[] at = {0};
    forEach(view, offset -> set(view.type(), segment, viewOffset + offset, values[at[0]++]));
  }

  private interface OffsetConsumer {
    void accept(int offset);
  }

  private static void forEach(Tensor tensor, OffsetConsumer consumer) {
    Shape shape = tensor.shape();
    for (long i3 = 0; i3 < shape.ne3(); i3++) {
      for (long i2 = 0; i2 < shape.ne2(); i2++) {
        for (long i1 = 0; i1 < shape.ne1(); i1++) {
          long row = i1 * tensor.nb(1) + i2 * tensor.nb(2) + i3 * tensor.nb(3);
          for (long i0 = 0; i0 < shape.ne0(); i0++) {
            consumer.accept(Math.toIntExact(row + i0 * tensor.nb(0)));
          }
        }
      }
    }
  }

  /** The value that an element of this type holds after it was set to another one. */
  static double round(Type type, double value) {
    MemorySegment element = MemorySegment.ofArray(new byte[8]);
    set(type, element, 0, value);
    return get(type, element, 0);
  }

  private static double get(Type type, MemorySegment bytes, long offset) {
    return switch (type) {
      case F32 -> bytes.get(ValueLayout.JAVA_FLOAT_UNALIGNED, offset);
      case F64 -> bytes.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset);
      case F16 -> Float.float16ToFloat(bytes.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset));
      case BF16 -> Bfloat16.toFloat(bytes.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset));
      case I8 -> bytes.get(ValueLayout.JAVA_BYTE, offset);
      case I16 -> bytes.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset);
      case I32 -> bytes.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
      case I64 -> bytes.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
      default -> throw unsupported(type);
    };
  }

  private static void set(Type type, MemorySegment bytes, long offset, double value) {
    switch (type) {
      case F32 -> bytes.set(ValueLayout.JAVA_FLOAT_UNALIGNED, offset, (float) value);
      case F64 -> bytes.set(ValueLayout.JAVA_DOUBLE_UNALIGNED, offset, value);
      case F16 ->
          bytes.set(ValueLayout.JAVA_SHORT_UNALIGNED, offset, Float.floatToFloat16((float) value));
      case BF16 -> bytes.set(ValueLayout.JAVA_SHORT_UNALIGNED, offset, Bfloat16.of((float) value));
      case I8 -> bytes.set(ValueLayout.JAVA_BYTE, offset, (byte) Math.round(value));
      case I16 -> bytes.set(ValueLayout.JAVA_SHORT_UNALIGNED, offset, (short) Math.round(value));
      case I32 -> bytes.set(ValueLayout.JAVA_INT_UNALIGNED, offset, (int) Math.round(value));
      case I64 -> bytes.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, Math.round(value));
      default -> throw unsupported(type);
    }
  }

  static IllegalArgumentException unsupported(Type type) {
    return new IllegalArgumentException(
        "elements of "
            + type
            + " have no single values; expected F32, F16, BF16, F64 or I8 to I64");
  }
}
