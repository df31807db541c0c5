package org.ggmlext.internal.callback;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/**
 * What happens to a {@link Throwable} at the border: C gets a failed status and a message, and the
 * object waits for whoever started the work.
 */
public final class Failures {
  private static final MemorySegment NO_MESSAGE =
      Arena.global().allocateFrom("a Java callback failed, and so did making its message");

  // first failure of each backend's current compute, by the backend's address
  private static final ConcurrentHashMap<Long, Throwable> OF_BACKEND = new ConcurrentHashMap<>();

  // last failure of a callback that runs on the thread which made the call: inference
  private static final ThreadLocal<@Nullable Throwable> OF_THREAD = new ThreadLocal<>();

  private Failures() {}

  /** Keeps the failure if it is the backend's first since {@link #take}, and tells C. */
  static int ofBackend(long backend, @Nullable Object who, String what, Throwable failure) {
    try {
      OF_BACKEND.putIfAbsent(backend, failure);
    } catch (Throwable e) {
      // Without memory even for this, status and message must do.
      failure.addSuppressed(e);
    }
    return tell(who, what, failure);
  }

  /** Keeps the failure for the thread that it happened on, and tells C. */
  static int ofThread(@Nullable Object who, String what, Throwable failure) {
    OF_THREAD.set(failure);
    return tell(who, what, failure);
  }

  /** Leaves the message for C. Throws nothing, whatever state the VM is in. */
  static int tell(@Nullable Object who, String what, Throwable failure) {
    try {
      setError((who == null ? "withdrawn registration" : who) + ": " + what + ": " + failure);
    } catch (Throwable e) {
      ggml_ext_h.ggml_ext_set_error(NO_MESSAGE);
    }
    return ggml_ext_h.GGML_EXT_STATUS_FAILED();
  }

  /** Leaves a message for C: why the callback that is running refuses or fails. */
  public static void setError(String message) {
    try (Arena arena = Arena.ofConfined()) {
      ggml_ext_h.ggml_ext_set_error(arena.allocateFrom(message.replace('\0', ' ')));
    }
  }

  /** The first failure of a backend since the last call of this, null if there was none. */
  public static @Nullable Throwable take(long backend) {
    return OF_BACKEND.isEmpty() ? null : OF_BACKEND.remove(backend);
  }

  /** The failure of an inference on this thread since the last call of this. */
  public static @Nullable Throwable takeOfThread() {
    Throwable failure = OF_THREAD.get();
    if (failure != null) {
      OF_THREAD.remove();
    }
    return failure;
  }
}
