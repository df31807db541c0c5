package org.ggmlext.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import org.ggmlext.bindings.ggml_tensor;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes ggml's own memory. Addresses come from ggml alone, and whoever calls holds open
 * what owns them.
 */
public final class Native {
  private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
  private static final int MAX_STRING = 1 << 20;

  private static final long BUFFER = ggml_tensor.buffer$offset();
  private static final long OP = ggml_tensor.op$offset();
  private static final long FLAGS = ggml_tensor.flags$offset();
  private static final long SRC = ggml_tensor.src$offset();
  private static final long VIEW_SRC = ggml_tensor.view_src$offset();
  private static final long VIEW_OFFS = ggml_tensor.view_offs$offset();
  private static final long DATA = ggml_tensor.data$offset();
  private static final long NAME = ggml_tensor.name$offset();

  /** Sources that a tensor has room for. */
  public static final int MAX_SRC = 10;

  /** Bytes of a tensor's name, the terminating zero included. */
  public static final int MAX_NAME = 64;

  private Native() {}

  /** A C string in UTF-8; "" for null. */
  public static String string(MemorySegment address) {
    if (isNull(address)) {
      return "";
    }
    MemorySegment bytes = address.reinterpret(MAX_STRING);
    int length = 0;
    while (length < MAX_STRING && bytes.get(JAVA_BYTE, length) != 0) {
      length++;
    }
    return new String(bytes.asSlice(0, length).toArray(JAVA_BYTE), StandardCharsets.UTF_8);
  }

  /** Whether a C pointer is null. */
  public static boolean isNull(@Nullable MemorySegment address) {
    return address == null || address.address() == 0;
  }

  /** The pointer to a tensor with a tensor's exact size. */
  public static MemorySegment tensor(long address) {
    return MemorySegment.ofAddress(address).reinterpret(ggml_tensor.sizeof());
  }

  /** The buffer of a tensor; 0 for none. */
  public static long buffer(long tensor) {
    return ALL.get(JAVA_LONG, tensor + BUFFER);
  }

  /** The data of a tensor; 0 for none. */
  public static long data(long tensor) {
    return ALL.get(JAVA_LONG, tensor + DATA);
  }

  /** Sets where a tensor's data are. */
  public static void place(long tensor, long buffer, long data) {
    ALL.set(JAVA_LONG, tensor + BUFFER, buffer);
    ALL.set(JAVA_LONG, tensor + DATA, data);
  }

  /** What a view looks at; 0 for a tensor that owns its storage. */
  public static long viewSrc(long tensor) {
    return ALL.get(JAVA_LONG, tensor + VIEW_SRC);
  }

  /** Bytes from the storage's begin to a view. */
  public static long viewOffset(long tensor) {
    return ALL.get(JAVA_LONG, tensor + VIEW_OFFS);
  }

  /** A source of a tensor; 0 for none. */
  public static long src(long tensor, int index) {
    return ALL.get(JAVA_LONG, tensor + SRC + index * ADDRESS.byteSize());
  }

  /** Sets a source of a tensor. */
  public static void src(long tensor, int index, long source) {
    ALL.set(JAVA_LONG, tensor + SRC + index * ADDRESS.byteSize(), source);
  }

  /** The operation of a tensor, a value of {@code enum ggml_op}. */
  public static int op(long tensor) {
    return ALL.get(JAVA_INT, tensor + OP);
  }

  /** The flags of a tensor. */
  public static int flags(long tensor) {
    return ALL.get(JAVA_INT, tensor + FLAGS);
  }

  /** The name of a tensor. */
  public static String name(long tensor) {
    return string(MemorySegment.ofAddress(tensor + NAME));
  }
}
