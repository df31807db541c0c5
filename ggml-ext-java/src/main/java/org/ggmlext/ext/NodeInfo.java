package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NoSuchElementException;
import org.ggmlext.bindings.ggml_ext_node;
import org.ggmlext.internal.callback.Raw;
import org.jspecify.annotations.Nullable;

/**
 * Metadata of a graph's node, as callbacks see it: an immutable copy, without addresses of data.
 */
public final class NodeInfo {
  private static final int OP_PARAMS_SIZE = 64;

  private final String op;
  private final TensorInfo dst;
  private final List<@Nullable TensorInfo> sources;
  private final byte[] opParams;
  private final byte @Nullable [] attributes;
  private final @Nullable String function;

  /** Copies a {@code struct ggml_ext_node}. */
  NodeInfo(long struct) {
    op = Raw.getString(Raw.getLong(struct + ggml_ext_node.op$offset()));
    dst = new TensorInfo(Raw.getLong(struct + ggml_ext_node.dst$offset()));
    int count = Raw.getInt(struct + ggml_ext_node.n_src$offset());
    sources = tensors(count, Raw.getLong(struct + ggml_ext_node.src$offset()));
    long params = Raw.getLong(struct + ggml_ext_node.op_params$offset());
    opParams = params == 0 ? new byte[OP_PARAMS_SIZE] : Raw.getBytes(params, OP_PARAMS_SIZE);
    long attrs = Raw.getLong(struct + ggml_ext_node.attrs$offset());
    long size = Raw.getLong(struct + ggml_ext_node.attrs_size$offset());
    attributes = attrs == 0 ? null : Raw.getBytes(attrs, size);
    long name = Raw.getLong(struct + ggml_ext_node.function$offset());
    function = name == 0 ? null : Raw.getString(name);
  }

  /** Copies an array of pointers to {@code struct ggml_ext_tensor}, some of them perhaps NULL. */
  static List<@Nullable TensorInfo> tensors(int count, long array) {
    List<@Nullable TensorInfo> infos = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      long tensor = Raw.getLong(array + 8L * i);
      infos.add(tensor == 0 ? null : new TensorInfo(tensor));
    }
    return Collections.unmodifiableList(infos);
  }

  /** ggml's name of the operation ({@code "MUL_MAT"}, {@code "UNARY"}), or the operator's name. */
  public String op() {
    return op;
  }

  /**
   * What a {@code UNARY} or {@code GLU} node computes, by ggml's name ({@code "SILU"}, {@code
   * "SWIGLU"}); null for any other operation.
   */
  public @Nullable String function() {
    return function;
  }

  /** Whether this is a node of the operator. */
  public boolean is(Operator<?> operator) {
    return op.equals(operator.name());
  }

  /** The node's output. */
  public TensorInfo dst() {
    return dst;
  }

  /** Number of the last source that is there, plus one. */
  public int sourceCount() {
    return sources.size();
  }

  /** Whether the node has a source of this number. */
  public boolean hasSrc(int index) {
    return index >= 0 && index < sources.size() && sources.get(index) != null;
  }

  /**
   * A source.
   *
   * @param index 0 to {@code sourceCount() - 1}
   * @throws NoSuchElementException if the node has no such source; see {@link #hasSrc}
   */
  public TensorInfo src(int index) {
    TensorInfo source = index >= 0 && index < sources.size() ? sources.get(index) : null;
    if (source == null) {
      throw new NoSuchElementException(
          op + " node has no source " + index + "; it has " + sources.size() + " sources");
    }
    return source;
  }

  /**
   * A word of ggml's operation parameters as an integer.
   *
   * @param index 0 to 15
   */
  public int opParamInt(int index) {
    if (index < 0 || index >= OP_PARAMS_SIZE / Integer.BYTES) {
      throw new IndexOutOfBoundsException("operation parameter " + index + ", expected 0 to 15");
    }
    return MemorySegment.ofArray(opParams).get(ValueLayout.JAVA_INT_UNALIGNED, 4L * index);
  }

  /**
   * A word of ggml's operation parameters as a float.
   *
   * @param index 0 to 15
   */
  public float opParamFloat(int index) {
    return Float.intBitsToFloat(opParamInt(index));
  }

  /**
   * The node's attributes.
   *
   * @throws IllegalArgumentException if this is not a node of the operator
   */
  public <A extends Record> A attributes(Operator<A> operator) {
    if (!is(operator)) {
      throw new IllegalArgumentException(
          "node of " + op + " has no attributes of " + operator.name());
    }
    return operator.decode(attributes == null ? new byte[0] : attributes);
  }

  /** Such as {@code MUL_MAT -> "kq" F32 [64, 64, 12, 1]}. */
  @Override
  public String toString() {
    return op + " -> " + dst;
  }
}
