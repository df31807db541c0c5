package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_tensor;
import org.ggmlext.internal.callback.Raw;

/**
 * Metadata of a tensor, as callbacks see it: an immutable copy. Shapes and strides are in ggml
 * order, the fastest dimension first.
 */
public final class TensorInfo {
  private final long tensor;
  private final long viewSource;
  private final long viewOffset;
  private final int typeId;
  private final int flags;
  private final long ne0;
  private final long ne1;
  private final long ne2;
  private final long ne3;
  private final long nb0;
  private final long nb1;
  private final long nb2;
  private final long nb3;
  private final long nbytes;
  private final String name;
  private final String op;

  /** Copies a {@code struct ggml_ext_tensor}. */
  TensorInfo(long struct) {
    tensor = Raw.getLong(struct + ggml_ext_tensor.tensor$offset());
    viewSource = Raw.getLong(struct + ggml_ext_tensor.view_src$offset());
    viewOffset = Raw.getLong(struct + ggml_ext_tensor.view_offs$offset());
    typeId = Raw.getInt(struct + ggml_ext_tensor.type$offset());
    flags = Raw.getInt(struct + ggml_ext_tensor.flags$offset());
    long ne = struct + ggml_ext_tensor.ne$offset();
    ne0 = Raw.getLong(ne);
    ne1 = Raw.getLong(ne + 8);
    ne2 = Raw.getLong(ne + 16);
    ne3 = Raw.getLong(ne + 24);
    long nb = struct + ggml_ext_tensor.nb$offset();
    nb0 = Raw.getLong(nb);
    nb1 = Raw.getLong(nb + 8);
    nb2 = Raw.getLong(nb + 16);
    nb3 = Raw.getLong(nb + 24);
    nbytes = Raw.getLong(struct + ggml_ext_tensor.nbytes$offset());
    name = Raw.getString(Raw.getLong(struct + ggml_ext_tensor.name$offset()));
    op = Raw.getString(Raw.getLong(struct + ggml_ext_tensor.op$offset()));
  }

  MemorySegment handle() {
    return MemorySegment.ofAddress(tensor);
  }

  /** The tensor's name, "" if it has none. */
  public String name() {
    return name;
  }

  /**
   * What computes it: {@code "NONE"}, ggml's name of a built-in operation, or a registered
   * operator's name.
   */
  public String op() {
    return op;
  }

  /**
   * The element type.
   *
   * @throws IllegalArgumentException if this library does not know ggml's type; see {@link #typeId}
   */
  public Type type() {
    return Type.of(typeId);
  }

  /** ggml's number of the element type. */
  public int typeId() {
    return typeId;
  }

  /** Whether the elements have this type. */
  public boolean is(Type type) {
    return type.value() == typeId;
  }

  /**
   * Number of elements of a dimension; the fastest one is dimension 0.
   *
   * @param dimension 0 to 3
   */
  public long ne(int dimension) {
    return switch (dimension) {
      case 0 -> ne0;
      case 1 -> ne1;
      case 2 -> ne2;
      case 3 -> ne3;
      default -> throw noDimension(dimension);
    };
  }

  /**
   * Distance in bytes between neighbours of a dimension.
   *
   * @param dimension 0 to 3
   */
  public long nb(int dimension) {
    return switch (dimension) {
      case 0 -> nb0;
      case 1 -> nb1;
      case 2 -> nb2;
      case 3 -> nb3;
      default -> throw noDimension(dimension);
    };
  }

  private static IndexOutOfBoundsException noDimension(int dimension) {
    return new IndexOutOfBoundsException("dimension " + dimension + ", expected 0 to 3");
  }

  /** The sizes of all four dimensions. */
  public Shape shape() {
    return new Shape(ne0, ne1, ne2, ne3);
  }

  /** Bytes from its first to its last element. */
  public long nbytes() {
    return nbytes;
  }

  /** Number of elements. */
  public long elements() {
    return ne0 * ne1 * ne2 * ne3;
  }

  /** Number of rows: the product of dimensions 1, 2 and 3. */
  public long rows() {
    return ne1 * ne2 * ne3;
  }

  /**
   * Where a row begins.
   *
   * @param row counted over dimensions 1, 2 and 3 in this order
   * @return its distance from the tensor's first byte, in bytes
   */
  public long rowOffset(long row) {
    if (ne2 == 1 && ne3 == 1) {
      return row * nb1;
    }
    long i1 = row % ne1;
    long plane = row / ne1;
    return i1 * nb1 + plane % ne2 * nb2 + plane / ne2 * nb3;
  }

  /** Whether elements of a type with blocks of one element follow each other without gaps. */
  public boolean isContiguous() {
    return isRowContiguous()
        && (ne1 == 1 || nb1 == ne0 * nb0)
        && (ne2 == 1 || nb2 == ne1 * ne0 * nb0)
        && (ne3 == 1 || nb3 == ne2 * ne1 * ne0 * nb0);
  }

  /** Whether the elements of a row follow each other, where the type's blocks have one element. */
  public boolean isRowContiguous() {
    return ne0 == 1 || nb0 == nbytes - lastRowOffset() - (ne0 - 1) * nb0;
  }

  // Where the last row begins. What nbytes has besides it and the steps to the row's last element
  // is
  // the size of one element.
  private long lastRowOffset() {
    return (ne1 - 1) * nb1 + (ne2 - 1) * nb2 + (ne3 - 1) * nb3;
  }

  /** Whether both have the same number of elements in each dimension. */
  public boolean hasShapeOf(TensorInfo other) {
    return ne0 == other.ne0 && ne1 == other.ne1 && ne2 == other.ne2 && ne3 == other.ne3;
  }

  /** Whether it is marked as an input of the graph. */
  public boolean isInput() {
    return (flags & ggml_ext_h.GGML_EXT_TENSOR_FLAG_INPUT()) != 0;
  }

  /** Whether it is marked as an output of the graph. */
  public boolean isOutput() {
    return (flags & ggml_ext_h.GGML_EXT_TENSOR_FLAG_OUTPUT()) != 0;
  }

  /** Whether it is a view of another tensor's storage. */
  public boolean isView() {
    return viewSource != 0;
  }

  /** Where a view begins in the storage of what it views, in bytes. */
  public long viewOffset() {
    return viewOffset;
  }

  /** Whether both describe the same tensor of the same graph. */
  public boolean isSameTensor(TensorInfo other) {
    return tensor == other.tensor;
  }

  /** Whether this is a view of the other tensor. */
  public boolean isViewOf(TensorInfo other) {
    return viewSource == other.tensor && viewSource != 0;
  }

  /** Such as {@code "scores" F32 [64, 12]}. */
  @Override
  public String toString() {
    return "\"" + name + "\" " + typeName() + " " + shape();
  }

  private String typeName() {
    try {
      return type().toString();
    } catch (IllegalArgumentException e) {
      return "type " + typeId;
    }
  }
}
