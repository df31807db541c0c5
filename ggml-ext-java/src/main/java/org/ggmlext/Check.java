package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.internal.Native;

/**
 * What ggml asserts about the sources of operations, when they are built or computed. A failed
 * assertion ends the process, so it is checked before.
 */
final class Check {
  private Check() {}

  static IllegalArgumentException bad(String op, String message, Object... args) {
    return new IllegalArgumentException(op + ": " + message.formatted(args));
  }

  /** A new tensor. */
  static void tensor(Type type, Shape shape) {
    for (int i = 0; i < Shape.DIMS; i++) {
      if (shape.ne(i) < 1) {
        throw new IllegalArgumentException(
            "a tensor's sizes are positive, not [%d, %d, %d, %d]"
                .formatted(shape.ne0(), shape.ne1(), shape.ne2(), shape.ne3()));
      }
    }
    try {
      Math.multiplyExact(type.rowSize(shape.ne0()), shape.rows());
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "a tensor %s %s has more bytes than a long can count".formatted(type, shape), e);
    }
    if (!isKnown(type)) {
      throw new IllegalArgumentException("the loaded ggml does not know the type " + type);
    }
  }

  /** Whether the loaded ggml, which may be older or newer, has a type. */
  static boolean isKnown(Type type) {
    MemorySegment name = ggml_h.ggml_type_name(type.value());
    return !Native.isNull(name)
        && !Native.string(name).equals("NONE")
        && ggml_h.ggml_type_size(type.value()) == type.byteSize();
  }

  static void type(String op, String name, Tensor tensor, Type... allowed) {
    if (!Arrays.asList(allowed).contains(tensor.type())) {
      throw bad(op, "%s is %s, its type must be one of %s", name, tensor, List.of(allowed));
    }
  }

  static void contiguous(String op, String name, Tensor tensor) {
    if (!tensor.isContiguous()) {
      throw bad(op, "%s, %s, must be contiguous: use cont() on it", name, tensor);
    }
  }

  /** Dense rows, where ggml compares the stride even of a row of one element. */
  static void rows(String op, String name, Tensor tensor) {
    if (tensor.nb(0) != tensor.type().byteSize()) {
      throw bad(
          op,
          "the elements of %s, %s, must follow each other in a row (%d bytes, not %d): use cont()",
          name,
          tensor,
          tensor.type().byteSize(),
          tensor.nb(0));
    }
  }

  /** Dense rows, evenly spaced. */
  static void evenRows(String op, String name, Tensor tensor) {
    rows(op, name, tensor);
    if (!tensor.contiguousFrom(1)) {
      throw bad(op, "the rows of %s, %s, must be evenly spaced: use cont() on it", name, tensor);
    }
  }

  static void sameShape(String op, Tensor a, Tensor b) {
    if (!a.shape().equals(b.shape())) {
      throw bad(op, "shapes must be equal: %s and %s", a, b);
    }
  }

  /** That b can be broadcast to a. */
  static void repeatable(String op, Tensor b, Shape a) {
    for (int i = 0; i < Shape.DIMS; i++) {
      if (a.ne(i) % b.ne(i) != 0) {
        throw bad(
            op,
            "%s cannot be repeated to %s: size %d of dimension %d is no divisor of %d",
            b,
            a,
            b.ne(i),
            i,
            a.ne(i));
      }
    }
  }

  static void elements(String op, Tensor a, Shape shape) {
    if (a.elements() != shape.elements()) {
      throw bad(op, "%s has %d elements, %s has %d", a, a.elements(), shape, shape.elements());
    }
  }

  static void finite(String op, String name, float value) {
    if (!Float.isFinite(value)) {
      throw bad(op, "%s must be finite, not %s", name, value);
    }
  }

  static void epsilon(String op, float eps) {
    if (!(eps >= 0)) {
      throw bad(op, "eps must be 0 or more, not %s", eps);
    }
  }

  /** The types of a + b and its like. */
  static void binaryTypes(String op, Tensor a, Tensor b) {
    boolean known =
        switch (a.type()) {
          case F32 -> b.type() == Type.F32;
          case F16, BF16 -> b.type() == a.type() || b.type() == Type.F32;
          default -> false;
        };
    if (!known) {
      throw bad(
          op,
          "%s and %s: types must be F32 and F32, or F16 or BF16 with the same or F32",
          a.type(),
          b.type());
    }
  }

  /** What can be copied into what. */
  static void copyable(String op, Tensor from, Type to, boolean contiguousTarget) {
    Type type = from.type();
    boolean isFloat = type == Type.F32 || type == Type.F16 || type == Type.BF16;
    boolean toFloat = to == Type.F32 || to == Type.F16 || to == Type.BF16;
    if (type == to) {
      if (to.isQuantized()) {
        contiguous(op, "a", from);
      }
    } else if (isFloat && to.isQuantized()) {
      rows(op, "a", from);
      if (from.ne(0) % to.blockSize() != 0 || !contiguousTarget) {
        throw bad(op, "%s is no whole number of %s blocks of %d", from, to, to.blockSize());
      }
    } else if (type.isQuantized() && to == Type.F32) {
      contiguous(op, "a", from);
    } else if (!(isFloat && toFloat)
        && !(type == Type.F32 && to == Type.I32)
        && !(type == Type.I32 && to == Type.F32)) {
      throw bad(op, "%s cannot be converted to %s", type, to);
    }
  }
}
