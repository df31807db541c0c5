package org.ggmlext.kit;

import java.util.Arrays;
import org.ggmlext.Context;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;

/** An input in a certain layout: its storage, and the tensor that the user's builder gets. */
final class PlacedInput {
  /** All bits set: NaN for floating-point types, -1 for the others. */
  static final byte POISON = (byte) 0xff;

  /** Elements before a view with an offset; keeps an alignment of 16 bytes at least. */
  private static final int OFFSET = 16;

  private final Input input;
  private final Layout layout;
  private final Tensor storage;
  private Tensor view;
  private Tensor presented;

  /** Makes the storage; the context is allocated before {@link #present}. */
  PlacedInput(Context context, Input input, Layout layout) {
    this.input = input;
    this.layout = layout;
    Type type = input.type();
    Shape s = input.shape();
    storage =
        switch (layout) {
          case CONTIGUOUS, COMPUTED -> context.newTensor(type, s);
          case STRIDED -> context.newTensor(type, s.ne0() + 3, s.ne1() + 1, s.ne2() + 1, s.ne3());
          case TRANSPOSED -> context.newTensor(type, s.ne1(), s.ne0(), s.ne2(), s.ne3());
          case PERMUTED -> context.newTensor(type, s.ne0(), s.ne2(), s.ne1(), s.ne3());
          case OFFSET -> context.newTensor(type, OFFSET + s.elements());
        };
    view = storage;
    presented = storage;
  }

  /** Makes the nodes that present the input. */
  Tensor present(Context nodes) {
    Shape s = input.shape();
    long size = input.type().byteSize();
    view =
        switch (layout) {
          case CONTIGUOUS, COMPUTED -> storage;
          case STRIDED -> nodes.view4d(storage, s, storage.nb(1), storage.nb(2), storage.nb(3), 0);
          case TRANSPOSED -> nodes.permute(storage, 1, 0, 2, 3);
          case PERMUTED -> nodes.permute(storage, 0, 2, 1, 3);
          case OFFSET ->
              nodes.view4d(
                  storage,
                  s,
                  s.ne0() * size,
                  s.ne0() * s.ne1() * size,
                  s.ne0() * s.ne1() * s.ne2() * size,
                  offset());
        };
    presented = layout == Layout.COMPUTED ? nodes.cont(storage) : view;
    return presented;
  }

  Tensor presented() {
    return presented;
  }

  private long offset() {
    return layout == Layout.OFFSET ? (long) OFFSET * input.type().byteSize() : 0;
  }

  /** Writes values; gaps are poisoned. */
  void fill(Values values) {
    byte[] bytes = new byte[Math.toIntExact(storage.byteSize())];
    Arrays.fill(bytes, POISON);
    Elements.scatter(view, offset(), values.data(), bytes);
    storage.setBytes(bytes);
  }

  /** Writes NaN everywhere; whole numbers, which may be indices, stay. */
  void poison() {
    switch (input.type()) {
      case F32, F16, BF16, F64 -> poison(storage);
      default -> {}
    }
  }

  static void poison(Tensor tensor) {
    byte[] bytes = new byte[Math.toIntExact(tensor.byteSize())];
    Arrays.fill(bytes, POISON);
    tensor.setBytes(bytes);
  }
}
