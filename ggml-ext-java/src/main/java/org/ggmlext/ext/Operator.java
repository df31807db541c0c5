package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.util.List;
import java.util.Objects;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_tensor;
import org.ggmlext.internal.Native;
import org.jspecify.annotations.Nullable;

/**
 * An operation that ggml does not have. It is known once it is {@linkplain
 * Extensions#register(Operator) registered}, and computed by the kernels registered for its name.
 * Immutable.
 *
 * <p>A node's attributes are a record, which is stored in the node as a C struct with the same
 * fields: boolean and byte take 1 byte, short 2, int, float and enums (their ordinal) 4, long and
 * double 8, naturally aligned, 40 bytes at most together. So native kernels can read them too.
 *
 * @param <A> the attributes
 */
public final class Operator<A extends Record> {
  /** Operators of this package come with the bundled kernel libraries. */
  private static final String SHIPPED = Operator.class.getPackageName() + ".ops";

  private final String name;
  private final Class<A> attributesType;
  private final AttributeCodec<A> codec;
  private final Inference<A> inference;
  private final String howToRegister;
  private final boolean ofLibrary;

  private Operator(
      String name,
      Class<A> attributesType,
      AttributeCodec<A> codec,
      Inference<A> inference,
      String howToRegister,
      boolean ofLibrary) {
    this.name = Objects.requireNonNull(name, "name");
    this.attributesType = attributesType;
    this.codec = codec;
    this.inference = Objects.requireNonNull(inference, "inference");
    this.howToRegister = howToRegister;
    this.ofLibrary = ofLibrary;
  }

  /**
   * An operator with attributes.
   *
   * @param name versioned, such as {@code "app.swish.v1"}: letters, digits, '.', '_' and '-', at
   *     least one '.'; unique in the process
   * @param attributes the record; where it lies in a named module, its package is open to
   *     org.ggmlext, or use {@link #of(String, Class, MethodHandles.Lookup, Inference)}
   * @param inference gives the output's type and shape
   * @throws IllegalArgumentException if the record has a component of another type, or takes more
   *     than 40 bytes
   */
  public static <A extends Record> Operator<A> of(
      String name, Class<A> attributes, Inference<A> inference) {
    return of(name, attributes, MethodHandles.lookup(), inference);
  }

  /**
   * An operator with attributes that only the given lookup reaches.
   *
   * @param lookup {@link MethodHandles#lookup()} of a class in the record's module
   */
  public static <A extends Record> Operator<A> of(
      String name, Class<A> attributes, MethodHandles.Lookup lookup, Inference<A> inference) {
    return new Operator<>(
        name,
        attributes,
        AttributeCodec.of(attributes, lookup),
        inference,
        "call extensions.register(operator) first",
        false);
  }

  /**
   * An operator that a {@linkplain KernelLibrary native library} registers, its inference included.
   * Nodes of it can be made once the library is registered; it cannot be registered itself.
   *
   * @param name as the library spells it
   * @param attributes a record with the fields of the library's struct, in its order
   * @param lookup {@link MethodHandles#lookup()} of a class in the record's module
   */
  public static <A extends Record> Operator<A> ofLibrary(
      String name, Class<A> attributes, MethodHandles.Lookup lookup) {
    Inference<A> none =
        (sources, values) -> {
          throw new IllegalStateException(name + " is inferred by its library");
        };
    boolean shipped = lookup.lookupClass().getPackageName().equals(SHIPPED);
    return new Operator<>(
        name,
        attributes,
        AttributeCodec.of(attributes, lookup),
        none,
        shipped
            ? "register KernelLibrary.bundled(\"cpu\") first"
            : "register its kernel library first",
        true);
  }

  /** An operator without attributes. */
  public static Operator<NoAttributes> of(String name, Inference<NoAttributes> inference) {
    return of(name, NoAttributes.class, inference);
  }

  /** The versioned name. */
  public String name() {
    return name;
  }

  /** The record that holds a node's attributes. */
  public Class<A> attributesType() {
    return attributesType;
  }

  /** Bytes that a node's attributes take. */
  public int attributesSize() {
    return codec.size();
  }

  /**
   * Makes a node: an ordinary ggml tensor whose sources are the given ones.
   *
   * @param context where the node is made
   * @param attributes copied into the node
   * @param sources at most 10
   * @return the node's output, contiguous, of the type and shape that inference gave
   * @throws GgmlException if inference refuses the sources; the message says why, and what
   *     inference threw is the cause; or if the context has no room for the node
   * @throws IllegalArgumentException if the operator is not registered, or there are more sources;
   *     also where a {@linkplain #ofLibrary library's} inference refuses the sources
   * @throws IllegalStateException if the context is closed, or {@link Extensions#attach} was not
   *     called
   */
  public Tensor create(Context context, A attributes, Tensor... sources) {
    return NodeCreation.create(
        context, this, codec.encode(Objects.requireNonNull(attributes, "attributes")), sources);
  }

  /**
   * Makes a node of an operator without attributes.
   *
   * @throws IllegalStateException if the operator has attributes
   * @see #create(Context, Record, Tensor...)
   */
  public Tensor create(Context context, Tensor... sources) {
    if (codec.size() != 0) {
      throw new IllegalStateException(
          name
              + " has attributes: create(context, new "
              + attributesType.getSimpleName()
              + "(...), sources...)");
    }
    return NodeCreation.create(context, this, new byte[0], sources);
  }

  /**
   * The attributes of a node.
   *
   * @return null if it is no node of this operator
   * @throws IllegalStateException if the node's context is closed, or {@link Extensions#attach} was
   *     not called
   */
  public @Nullable A attributesOf(Tensor node) {
    if (!node.op().equals("CUSTOM")) {
      return null;
    }
    Extensions.requireAttached();
    byte[] bytes =
        node.nativeCall(
            tensor ->
                Native.string(ggml_ext_h.ggml_ext_op_name(tensor)).equals(name)
                    ? attributeBytes(tensor)
                    : null);
    return bytes == null ? null : codec.decode(bytes);
  }

  private byte[] attributeBytes(MemorySegment tensor) {
    long tail = ggml_tensor.op_params$layout().byteSize() - ggml_ext_h.GGML_EXT_MAX_ATTR_SIZE();
    return tensor
        .reinterpret(ggml_tensor.sizeof())
        .asSlice(ggml_tensor.op_params$offset() + tail, codec.size())
        .toArray(ValueLayout.JAVA_BYTE);
  }

  String howToRegister() {
    return howToRegister;
  }

  boolean isOfLibrary() {
    return ofLibrary;
  }

  A decode(byte[] bytes) {
    return codec.decode(bytes);
  }

  OutputSpec infer(List<TensorInfo> sources, byte[] bytes) throws Exception {
    return inference.infer(sources, codec.decode(bytes));
  }

  @Override
  public String toString() {
    return "operator " + name;
  }
}
