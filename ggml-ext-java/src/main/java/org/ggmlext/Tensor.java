package org.ggmlext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_tensor;
import org.ggmlext.internal.CString;
import org.ggmlext.internal.MappedFault;
import org.ggmlext.internal.Native;
import org.jspecify.annotations.Nullable;

/**
 * A tensor, or the node of a graph that computes it: a handle that is bound to its context. Type,
 * shape and strides never change.
 *
 * <p>Data are read and written in ggml's order, the fastest dimension first. Every access throws
 * {@link IllegalStateException} if the context is closed or the tensor has no memory: that comes
 * from {@link Context#allocate}, {@link Scheduler#allocate} or {@link GraphAllocator#allocate}.
 * Accesses are safe for use by several threads, but a read during a compute may see any mixture of
 * old and new values.
 */
public final class Tensor {
  private final Context context;
  private final MemorySegment handle;
  private final Type type;
  private final Shape shape;
  private final long nb0;
  private final long nb1;
  private final long nb2;
  private final long nb3;

  Tensor(Context context, MemorySegment handle) {
    this.context = context;
    this.handle = handle;
    this.type = Type.of(ggml_tensor.type(handle));
    this.shape =
        new Shape(
            ggml_tensor.ne(handle, 0),
            ggml_tensor.ne(handle, 1),
            ggml_tensor.ne(handle, 2),
            ggml_tensor.ne(handle, 3));
    this.nb0 = ggml_tensor.nb(handle, 0);
    this.nb1 = ggml_tensor.nb(handle, 1);
    this.nb2 = ggml_tensor.nb(handle, 2);
    this.nb3 = ggml_tensor.nb(handle, 3);
  }

  /** The context that the tensor was made in. */
  public Context context() {
    return context;
  }

  /** The type of the elements. */
  public Type type() {
    return type;
  }

  /** The sizes of the dimensions. */
  public Shape shape() {
    return shape;
  }

  /** The size of a dimension, 0 being the fastest. */
  public long ne(int dim) {
    return shape.ne(dim);
  }

  /** The stride of a dimension in bytes. */
  public long nb(int dim) {
    return switch (dim) {
      case 0 -> nb0;
      case 1 -> nb1;
      case 2 -> nb2;
      case 3 -> nb3;
      default -> throw new IllegalArgumentException("dimensions are 0 to 3, not " + dim);
    };
  }

  /** Number of elements. */
  public long elements() {
    return shape.elements();
  }

  /** Bytes from the first to the last byte of the elements, gaps included. */
  public long byteSize() {
    if (elements() == 0) {
      return 0;
    }
    long rest = (ne(1) - 1) * nb1 + (ne(2) - 1) * nb2 + (ne(3) - 1) * nb3;
    return type.blockSize() == 1
        ? type.byteSize() + (ne(0) - 1) * nb0 + rest
        : ne(0) * nb0 / type.blockSize() + rest;
  }

  /** Whether the elements follow each other without gaps, in ggml's order. */
  public boolean isContiguous() {
    return contiguousFrom(0);
  }

  /** Whether dimensions from this one on are without gaps. */
  boolean contiguousFrom(int dim) {
    long next = type.byteSize();
    if (ne(0) != type.blockSize() && nb0 != next) {
      return false;
    }
    next *= ne(0) / type.blockSize();
    for (int i = 1; i < Shape.DIMS; i++) {
      if (i > dim) {
        if (ne(i) != 1 && nb(i) != next) {
          return false;
        }
        next *= ne(i);
      } else {
        next = ne(i) * nb(i);
      }
    }
    return true;
  }

  /** Whether the elements of each row follow each other without gaps. */
  public boolean hasContiguousRows() {
    return ne(0) == type.blockSize() || nb0 == type.byteSize();
  }

  /** Whether the strides of the first two dimensions are in the wrong order. */
  public boolean isTransposed() {
    return nb0 > nb1;
  }

  /**
   * The name, "" if it has none.
   *
   * @throws IllegalStateException if the context is closed
   */
  public String name() {
    try (Context.Hold _ = context.hold()) {
      return Native.name(handle.address());
    }
  }

  /**
   * Sets the name.
   *
   * @return this
   * @throws IllegalArgumentException if it has more than 63 bytes in UTF-8, or a zero character
   * @throws IllegalStateException if the context is closed
   */
  public Tensor name(String name) {
    int bytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (bytes >= Native.MAX_NAME) {
      throw new IllegalArgumentException(
          "a tensor's name has at most %d bytes, \"%s\" has %d"
              .formatted(Native.MAX_NAME - 1, name, bytes));
    }
    try (Context.Hold _ = context.hold();
        Arena arena = Arena.ofConfined()) {
      ggml_h.ggml_set_name(handle, CString.allocate(arena, "a tensor's name", name));
      return this;
    }
  }

  /**
   * What computes this tensor: {@code NONE} for one that is no result, else ggml's name of the
   * operation, such as {@code MUL_MAT} or {@code GELU}.
   *
   * @throws IllegalStateException if the context is closed
   */
  public String op() {
    try (Context.Hold _ = context.hold()) {
      return Native.string(ggml_h.ggml_op_desc(handle));
    }
  }

  /**
   * Marks this as an input of graphs: inputs get memory first, so that all can be written before a
   * compute. Results may take it over later: write inputs again before each compute, or mark them
   * as outputs too.
   *
   * @return this
   * @throws IllegalStateException if the context is closed
   */
  public Tensor asInput() {
    try (Context.Hold _ = context.hold()) {
      ggml_h.ggml_set_input(handle);
      return this;
    }
  }

  /**
   * Marks this as an output of graphs: no other result reuses its memory, so that it can be read
   * after a compute.
   *
   * @return this
   * @throws IllegalStateException if the context is closed
   */
  public Tensor asOutput() {
    try (Context.Hold _ = context.hold()) {
      ggml_h.ggml_set_output(handle);
      return this;
    }
  }

  /** Whether this is marked as an input. */
  public boolean isInput() {
    return hasFlag(ggml_h.GGML_TENSOR_FLAG_INPUT());
  }

  /** Whether this is marked as an output. */
  public boolean isOutput() {
    return hasFlag(ggml_h.GGML_TENSOR_FLAG_OUTPUT());
  }

  private boolean hasFlag(int flag) {
    try (Context.Hold _ = context.hold()) {
      return (Native.flags(handle.address()) & flag) != 0;
    }
  }

  /** Whether this looks at the storage of another tensor. */
  public boolean isView() {
    try (Context.Hold _ = context.hold()) {
      return Native.viewSrc(handle.address()) != 0;
    }
  }

  /** Whether the tensor has memory now. */
  public boolean isAllocated() {
    try (Context.Access _ = context.access()) {
      return TensorData.isAllocated(handle.address());
    }
  }

  /**
   * Writes all elements of a contiguous F32, F16 or BF16 tensor, rounded to its type.
   *
   * @return this
   * @throws IllegalArgumentException if the number of values is not the number of elements, or the
   *     type is another one
   */
  public Tensor setFloats(float... values) {
    TensorData.setFloats(this, values);
    return this;
  }

  /**
   * Reads all elements of an F32, F16 or BF16 tensor, whatever its strides.
   *
   * @throws IllegalArgumentException if the type is another one, or there are more than an array
   *     holds; {@link #getBytes(long, MemorySegment)} reads parts
   */
  public float[] getFloats() {
    return TensorData.getFloats(this);
  }

  /**
   * Writes all elements of a contiguous I32 tensor.
   *
   * @return this
   * @throws IllegalArgumentException if the number of values is not the number of elements, or the
   *     type is another one
   */
  public Tensor setInts(int... values) {
    TensorData.setInts(this, values);
    return this;
  }

  /**
   * Reads all elements of an I32 tensor, whatever its strides.
   *
   * @throws IllegalArgumentException if the type is another one, or there are more than an array
   *     holds; {@link #getBytes(long, MemorySegment)} reads parts
   */
  public int[] getInts() {
    return TensorData.getInts(this);
  }

  /**
   * Writes all elements of a contiguous I64 tensor.
   *
   * @return this
   * @throws IllegalArgumentException if the number of values is not the number of elements, or the
   *     type is another one
   */
  public Tensor setLongs(long... values) {
    TensorData.setLongs(this, values);
    return this;
  }

  /**
   * Reads all elements of an I64 tensor, whatever its strides.
   *
   * @throws IllegalArgumentException if the type is another one, or there are more than an array
   *     holds; {@link #getBytes(long, MemorySegment)} reads parts
   */
  public long[] getLongs() {
    return TensorData.getLongs(this);
  }

  /**
   * Writes bytes as they are, whatever the type.
   *
   * @param offset bytes from the tensor's begin
   * @return this
   * @throws IndexOutOfBoundsException if they reach over the tensor's {@link #byteSize}
   * @throws GgmlException if they are those of a mapped file that was cut short; the tensor holds a
   *     part of them then
   */
  public Tensor setBytes(long offset, MemorySegment bytes) {
    try {
      TensorData.write(this, offset, bytes);
    } catch (InternalError e) {
      throw MappedFault.whileReading(
          "the file with the bytes for \"%s\" (%s)".formatted(name(), this), e);
    }
    return this;
  }

  /** As {@link #setBytes(long, MemorySegment)}, from the tensor's begin. */
  public Tensor setBytes(byte[] bytes) {
    return setBytes(0, MemorySegment.ofArray(bytes));
  }

  /**
   * Reads bytes as they are, whatever the type.
   *
   * @param offset bytes from the tensor's begin
   * @throws IndexOutOfBoundsException if {@code target} reaches over the tensor's {@link #byteSize}
   */
  public void getBytes(long offset, MemorySegment target) {
    TensorData.read(this, offset, target);
  }

  /**
   * All bytes of the tensor, gaps included.
   *
   * @throws IllegalArgumentException if there are more than an array holds, about 2<sup>31</sup>;
   *     {@link #getBytes(long, MemorySegment)} reads parts
   */
  public byte[] getBytes() {
    byte[] bytes = new byte[TensorData.arrayLength(this, byteSize(), "bytes")];
    getBytes(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  /**
   * The {@code ggml_tensor *}, for code that calls ggml's C functions itself and keeps the context
   * open meanwhile; {@link #nativeCall} does that.
   */
  public MemorySegment handle() {
    return handle;
  }

  /**
   * Calls native code with the {@code ggml_tensor *}. Its context, and those of the tensors that it
   * is made of, stay open during the call: a close by another thread takes effect after it.
   *
   * @return what {@code call} returned
   * @throws IllegalStateException if one of these contexts is closed
   */
  public <T extends @Nullable Object> T nativeCall(Function<MemorySegment, T> call) {
    try (Context.Hold _ = context.hold()) {
      return call.apply(handle);
    }
  }

  /** Whether both are handles of the same tensor. */
  @Override
  public boolean equals(Object other) {
    return other instanceof Tensor tensor
        && tensor.context == context
        && tensor.handle.address() == handle.address();
  }

  @Override
  public int hashCode() {
    return Long.hashCode(handle.address());
  }

  /** Type and shape, such as {@code F32 [384, 12]}. */
  @Override
  public String toString() {
    return type + " " + shape;
  }
}
