package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/**
 * An argument of a {@link CudaLaunch}: the device address of a tensor of the step that launches, or
 * of its scratch memory, or a value. Addresses are filled in when the step runs.
 */
public sealed interface CudaArgument {
  /** The address of the step's output, that of its last node. */
  record Output() implements CudaArgument {
    @Override
    public String toString() {
      return "dst()";
    }
  }

  /**
   * The address of a source of the step's last node.
   *
   * @param index number of the source
   */
  record Source(int index) implements CudaArgument {
    @Override
    public String toString() {
      return "src(" + index + ")";
    }
  }

  /**
   * The address of any tensor of the step's nodes.
   *
   * @param capture where it is; see {@link PrepareContext#capture}
   */
  record Captured(Capture capture) implements CudaArgument {
    public Captured {
      Objects.requireNonNull(capture, "capture");
    }

    @Override
    public String toString() {
      return "tensor(" + capture + ")";
    }
  }

  /**
   * An address in the step's scratch memory.
   *
   * @param offset bytes from its begin, which is aligned to 128 bytes
   */
  record Workspace(long offset) implements CudaArgument {
    public Workspace {
      if (offset < 0) {
        throw new IllegalArgumentException("offset is " + offset + ", expected >= 0");
      }
    }

    @Override
    public String toString() {
      return "workspace(" + offset + ")";
    }
  }

  /** Bytes that are the same at each execution. */
  final class Value implements CudaArgument {
    private final byte[] bytes;
    private final String text;

    private Value(MemorySegment value, String text) {
      this.bytes = value.toArray(ValueLayout.JAVA_BYTE);
      this.text = text;
    }

    private static Value of(ValueLayout layout, Object value, String type) {
      MemorySegment bytes = MemorySegment.ofArray(new long[1]).asSlice(0, layout.byteSize());
      layout.varHandle().set(bytes, 0L, value);
      return new Value(bytes, type + " " + value);
    }

    @Override
    public long size() {
      return bytes.length;
    }

    void writeTo(MemorySegment memory) {
      memory.copyFrom(MemorySegment.ofArray(bytes));
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /** The step's output. */
  static CudaArgument dst() {
    return new Output();
  }

  /** A source of the step's last node. */
  static CudaArgument src(int index) {
    return new Source(index);
  }

  /** A tensor that a rule's pattern captured. */
  static CudaArgument tensor(Capture capture) {
    return new Captured(capture);
  }

  /** The begin of the step's scratch memory. */
  static CudaArgument workspace() {
    return new Workspace(0);
  }

  /** An address in the step's scratch memory, so many bytes from its begin. */
  static CudaArgument workspace(long offset) {
    return new Workspace(offset);
  }

  /** A parameter of 4 bytes: {@code int}, {@code unsigned}. */
  static CudaArgument of(int value) {
    return Value.of(ValueLayout.JAVA_INT, value, "int");
  }

  /** A parameter of 8 bytes: {@code long long}, {@code size_t}, or a device address. */
  static CudaArgument of(long value) {
    return Value.of(ValueLayout.JAVA_LONG, value, "long");
  }

  /** A parameter of type {@code float}. */
  static CudaArgument of(float value) {
    return Value.of(ValueLayout.JAVA_FLOAT, value, "float");
  }

  /** A parameter of type {@code double}. */
  static CudaArgument of(double value) {
    return Value.of(ValueLayout.JAVA_DOUBLE, value, "double");
  }

  /**
   * A parameter of any other type, such as a struct.
   *
   * @param value its bytes as they lie in C; they are copied
   */
  static CudaArgument struct(MemorySegment value) {
    return new Value(value, "struct of " + value.byteSize() + " bytes");
  }

  /** As {@link #struct(MemorySegment)}. */
  static CudaArgument struct(byte[] value) {
    return struct(MemorySegment.ofArray(value));
  }

  /** Its size in bytes. */
  default long size() {
    return Long.BYTES;
  }
}
