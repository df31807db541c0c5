package org.ggmlext;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.Bfloat16;
import org.ggmlext.internal.MappedFile;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.WrittenMemory;

/** Reads and writes the data of tensors, wherever they are. */
final class TensorData {
  /** Some VMs make no longer arrays. */
  static final int MAX_ARRAY = Integer.MAX_VALUE - 8;

  private TensorData() {}

  static boolean isAllocated(long tensor) {
    long view = Native.viewSrc(tensor);
    long root = view != 0 ? view : tensor;
    return Native.buffer(root) != 0 && Native.data(root) != 0;
  }

  static void write(Tensor tensor, long offset, MemorySegment bytes) {
    Objects.checkFromIndexSize(offset, bytes.byteSize(), tensor.byteSize());
    try (Context.Access _ = tensor.context().access()) {
      MemorySegment host = host(tensor);
      if (!Native.isNull(host)) {
        MemorySegment written = host.asSlice(offset, bytes.byteSize()).copyFrom(bytes);
        WrittenMemory.report(written);
        return;
      }
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment copy = arena.allocate(bytes.byteSize()).copyFrom(bytes);
        ggml_backend_h.ggml_backend_tensor_set(tensor.handle(), copy, offset, bytes.byteSize());
      }
    }
  }

  static void read(Tensor tensor, long offset, MemorySegment target) {
    Objects.checkFromIndexSize(offset, target.byteSize(), tensor.byteSize());
    try (Context.Access _ = tensor.context().access()) {
      MemorySegment host = host(tensor);
      if (!Native.isNull(host)) {
        target.copyFrom(host.asSlice(offset, target.byteSize()));
        return;
      }
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment bytes = arena.allocate(target.byteSize());
        ggml_backend_h.ggml_backend_tensor_get(tensor.handle(), bytes, offset, target.byteSize());
        target.copyFrom(bytes);
      }
    }
  }

  /** The data in host memory; NULL if they are elsewhere. */
  private static MemorySegment host(Tensor tensor) {
    long address = tensor.handle().address();
    long view = Native.viewSrc(address);
    long root = view != 0 ? view : address;
    long buffer = Native.buffer(root);
    long data = Native.data(root);
    if (buffer == 0 || data == 0) {
      throw new IllegalStateException(
          ("the tensor \"%s\" (%s) has no memory: allocate its context or its graph first; a"
                  + " scheduler's memory belongs to the graph that it allocated last")
              .formatted(Native.name(address), tensor));
    }
    long begin = data + (view != 0 ? Native.viewOffset(address) : 0);
    if (ggml_backend_h.ggml_backend_buffer_is_host(MemorySegment.ofAddress(buffer))) {
      return MemorySegment.ofAddress(begin).reinterpret(tensor.byteSize());
    }
    if (view != 0) {
      // A view made before its storage got memory does not know that yet.
      Native.place(address, buffer, begin);
    }
    return MemorySegment.NULL;
  }

  /**
   * The length of an array that holds so many bytes or values of a tensor.
   *
   * @throws IllegalArgumentException if none does
   */
  static int arrayLength(Tensor tensor, long count, String what) {
    if (count > MAX_ARRAY) {
      throw new IllegalArgumentException(
          "a tensor %s has %d %s, an array holds at most %d: read parts by getBytes(offset, target)"
              .formatted(tensor, count, what, MAX_ARRAY));
    }
    return (int) count;
  }

  /** Copies a tensor of a file, which lies at an offset there. */
  static void load(MappedFile file, long offset, StoredTensor stored, Tensor tensor) {
    if (stored.type() != tensor.type() || !stored.shape().equals(tensor.shape())) {
      throw new IllegalArgumentException(
          "\"%s\" is %s %s, not %s"
              .formatted(stored.name(), stored.type(), stored.shape(), tensor));
    }
    needContiguous(tensor);
    file.read(
        bytes -> {
          write(tensor, 0, bytes.asSlice(offset, stored.byteSize()));
          return tensor;
        });
  }

  /** A copy of a tensor of a file, which lies at an offset there. */
  static byte[] copy(MappedFile file, long offset, StoredTensor stored) {
    if (stored.byteSize() > MAX_ARRAY) {
      throw new IllegalArgumentException(
          "\"%s\" has %d bytes, an array holds at most %d: read it by data(name)"
              .formatted(stored.name(), stored.byteSize(), MAX_ARRAY));
    }
    return file.read(bytes -> bytes.asSlice(offset, stored.byteSize()).toArray(JAVA_BYTE));
  }

  private static byte[] all(Tensor tensor) {
    byte[] bytes = new byte[arrayLength(tensor, tensor.byteSize(), "bytes, gaps included")];
    read(tensor, 0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  static void setFloats(Tensor tensor, float[] values) {
    needWritable(tensor, values.length);
    switch (tensor.type()) {
      case F32 -> write(tensor, 0, MemorySegment.ofArray(values));
      case F16 -> {
        short[] halves = new short[values.length];
        for (int i = 0; i < halves.length; i++) {
          halves[i] = Float.floatToFloat16(values[i]);
        }
        write(tensor, 0, MemorySegment.ofArray(halves));
      }
      case BF16 -> {
        short[] halves = new short[values.length];
        for (int i = 0; i < halves.length; i++) {
          halves[i] = Bfloat16.of(values[i]);
        }
        write(tensor, 0, MemorySegment.ofArray(halves));
      }
      default -> throw wrongType(tensor, "F32, F16 or BF16");
    }
  }

  static float[] getFloats(Tensor tensor) {
    Type type = tensor.type();
    if (type != Type.F32 && type != Type.F16 && type != Type.BF16) {
      throw wrongType(tensor, "F32, F16 or BF16");
    }
    int length = arrayLength(tensor, tensor.elements(), "elements");
    if (type == Type.F32 && tensor.isContiguous()) {
      float[] values = new float[length];
      read(tensor, 0, MemorySegment.ofArray(values));
      return values;
    }
    MemorySegment bytes = MemorySegment.ofArray(all(tensor));
    Offsets offsets = new Offsets(tensor);
    float[] values = new float[length];
    for (int i = 0; i < length; i++) {
      long at = offsets.next();
      values[i] =
          switch (type) {
            case F32 -> bytes.get(JAVA_FLOAT_UNALIGNED, at);
            case F16 -> Float.float16ToFloat(bytes.get(JAVA_SHORT_UNALIGNED, at));
            default -> Bfloat16.toFloat(bytes.get(JAVA_SHORT_UNALIGNED, at));
          };
    }
    return values;
  }

  static void setInts(Tensor tensor, int[] values) {
    needType(tensor, Type.I32);
    needWritable(tensor, values.length);
    write(tensor, 0, MemorySegment.ofArray(values));
  }

  static int[] getInts(Tensor tensor) {
    needType(tensor, Type.I32);
    int length = arrayLength(tensor, tensor.elements(), "elements");
    MemorySegment bytes = MemorySegment.ofArray(all(tensor));
    Offsets offsets = new Offsets(tensor);
    int[] values = new int[length];
    for (int i = 0; i < length; i++) {
      values[i] = bytes.get(JAVA_INT_UNALIGNED, offsets.next());
    }
    return values;
  }

  static void setLongs(Tensor tensor, long[] values) {
    needType(tensor, Type.I64);
    needWritable(tensor, values.length);
    write(tensor, 0, MemorySegment.ofArray(values));
  }

  static long[] getLongs(Tensor tensor) {
    needType(tensor, Type.I64);
    int length = arrayLength(tensor, tensor.elements(), "elements");
    MemorySegment bytes = MemorySegment.ofArray(all(tensor));
    Offsets offsets = new Offsets(tensor);
    long[] values = new long[length];
    for (int i = 0; i < length; i++) {
      values[i] = bytes.get(JAVA_LONG_UNALIGNED, offsets.next());
    }
    return values;
  }

  private static void needWritable(Tensor tensor, int values) {
    if (values != tensor.elements()) {
      throw new IllegalArgumentException(
          "a tensor %s has %d elements, %d values are given"
              .formatted(tensor, tensor.elements(), values));
    }
    needContiguous(tensor);
  }

  private static void needContiguous(Tensor tensor) {
    if (!tensor.isContiguous()) {
      throw new IllegalArgumentException(
          "only a contiguous tensor is written as a whole; %s has gaps or is permuted"
              .formatted(tensor));
    }
  }

  private static void needType(Tensor tensor, Type type) {
    if (tensor.type() != type) {
      throw wrongType(tensor, type.toString());
    }
  }

  private static IllegalArgumentException wrongType(Tensor tensor, String expected) {
    return new IllegalArgumentException(
        "a tensor %s has no values of type %s".formatted(tensor, expected));
  }

  /** Byte offsets of the elements, in order. */
  private static final class Offsets {
    private final Tensor tensor;
    private long i0;
    private long i1;
    private long i2;
    private long i3;

    Offsets(Tensor tensor) {
      this.tensor = tensor;
    }

    long next() {
      long at = i0 * tensor.nb(0) + i1 * tensor.nb(1) + i2 * tensor.nb(2) + i3 * tensor.nb(3);
      if (++i0 == tensor.ne(0)) {
        i0 = 0;
        if (++i1 == tensor.ne(1)) {
          i1 = 0;
          if (++i2 == tensor.ne(2)) {
            i2 = 0;
            i3++;
          }
        }
      }
      return at;
    }
  }
}
