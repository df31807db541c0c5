package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_ext_tensor;
import org.ggmlext.internal.callback.Raw;

/**
 * A tensor with its data, while a kernel runs. Valid during the call that got it only: the memory
 * belongs to ggml.
 *
 * <p>Where the CPU cannot read the memory of the kernel's device, reading or writing throws an
 * {@link IllegalStateException}: such a kernel enqueues work, with {@link #address}, on the
 * device's own terms (see {@link Execution#cuda}).
 */
public final class TensorView {
  private static final long DATA_OFFSET = ggml_ext_tensor.data$offset();

  private final TensorInfo info;
  private final long dataField;
  private final boolean writable;
  private final boolean onHost;
  private final boolean isF32;

  // Replaced by every thread that finds another address; a segment's fields are final, so that a
  // racy reader sees a whole one.
  private MemorySegment data = MemorySegment.NULL;

  TensorView(long struct, TensorInfo info, boolean writable, boolean onHost) {
    this.info = info;
    this.dataField = struct + DATA_OFFSET;
    this.writable = writable;
    this.onHost = onHost;
    this.isF32 = info.is(Type.F32);
  }

  /** Takes over the address that the tensor has now. */
  void refresh() {
    long address = Raw.getLong(dataField);
    if (address != data.address()) {
      move(address);
    }
  }

  private void move(long address) {
    // Of what only the device can read, nothing but the address.
    long size = onHost && address != 0 ? info.nbytes() : 0;
    MemorySegment segment = Raw.segment(address, size);
    data = writable ? segment : segment.asReadOnly();
  }

  /** Type, shape, strides and name. */
  public TensorInfo info() {
    return info;
  }

  /**
   * The tensor's bytes, from its first to its last element; exactly {@link TensorInfo#nbytes} long,
   * and read-only for sources. An override's output may lie over one of its inputs.
   *
   * @throws IllegalStateException if the CPU cannot read the memory of the kernel's device
   */
  public MemorySegment data() {
    if (!onHost) {
      throw new IllegalStateException(
          this
              + " is in memory of a device, which the CPU cannot read: use address(), and enqueue"
              + " work by Execution.cuda()");
    }
    return data;
  }

  /** The address of {@link #data}, in the memory of the kernel's device; 0 if it has none. */
  public long address() {
    return data.address();
  }

  /** Number of elements of a dimension; the fastest one is dimension 0. */
  public long ne(int dimension) {
    return info.ne(dimension);
  }

  /** Distance in bytes between neighbours of a dimension. */
  public long nb(int dimension) {
    return info.nb(dimension);
  }

  /** The element type. */
  public Type type() {
    return info.type();
  }

  /** Number of rows: the product of dimensions 1, 2 and 3. */
  public long rows() {
    return info.rows();
  }

  /** Where a row begins in {@link #data}, in bytes; rows are counted over dimensions 1, 2 and 3. */
  public long rowOffset(long row) {
    return info.rowOffset(row);
  }

  /**
   * A row's bytes, from its first to its last element.
   *
   * @param row counted over dimensions 1, 2 and 3
   */
  public MemorySegment row(long row) {
    long size = info.nbytes() - info.rowOffset(info.rows() - 1);
    return data().asSlice(info.rowOffset(row), size);
  }

  /** Where an element of a type with blocks of one element lies in {@link #data}, in bytes. */
  public long offset(long i0, long i1, long i2, long i3) {
    return i0 * info.nb(0) + i1 * info.nb(1) + i2 * info.nb(2) + i3 * info.nb(3);
  }

  /**
   * An element of an F32 tensor. Bounds are those of {@link #data}. Indices are of the dimensions:
   * {@code getFloat(i, row, 0, 0)} is an element of a row that is counted over dimensions 1, 2 and
   * 3 only where the tensor is {@linkplain TensorInfo#isContiguous contiguous}; elsewhere {@link
   * #rowOffset} knows where it begins.
   *
   * @throws IllegalArgumentException if the tensor is of another type
   */
  public float getFloat(long i0, long i1, long i2, long i3) {
    needF32();
    return data().get(ValueLayout.JAVA_FLOAT, offset(i0, i1, i2, i3));
  }

  /**
   * Sets an element of an F32 tensor. Bounds are those of {@link #data}.
   *
   * @throws IllegalArgumentException if the tensor is of another type
   */
  public void setFloat(long i0, long i1, long i2, long i3, float value) {
    needF32();
    data().set(ValueLayout.JAVA_FLOAT, offset(i0, i1, i2, i3), value);
  }

  private void needF32() {
    if (!isF32) {
      throw new IllegalArgumentException(
          "getFloat and setFloat are for tensors of type F32, not " + this + ": use data()");
    }
  }

  @Override
  public String toString() {
    return info.toString();
  }
}
