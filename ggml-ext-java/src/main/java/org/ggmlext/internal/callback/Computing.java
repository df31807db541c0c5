package org.ggmlext.internal.callback;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.LongPredicate;

/**
 * What a thread computes while it runs a kernel, so that a call can be refused which would wait for
 * that compute to end. Computes on other backends may lie within it.
 */
public final class Computing {
  private static final ThreadLocal<Computing> OF_THREAD = ThreadLocal.withInitial(Computing::new);

  private long[] backends = new long[4];
  private int depth;

  private Computing() {}

  /**
   * Whether this thread runs a kernel for this {@code ggml_backend_t}. Other callbacks need not be
   * asked for: they run on the thread that called compute, which has its locks.
   */
  public static boolean on(MemorySegment backend) {
    return any(address -> address == backend.address());
  }

  /** Whether this holds for a backend that this thread runs a kernel for. */
  public static boolean any(LongPredicate condition) {
    Computing thread = OF_THREAD.get();
    for (int i = 0; i < thread.depth; i++) {
      if (condition.test(thread.backends[i])) {
        return true;
      }
    }
    return false;
  }

  /** The backend that this thread runs a kernel for; 0 for none. */
  static long backend() {
    Computing thread = OF_THREAD.get();
    return thread.depth == 0 ? 0 : thread.backends[thread.depth - 1];
  }

  /** This thread begins a kernel. Must be followed by {@link #end} of what it returns. */
  static Computing begin(long backend) {
    Computing thread = OF_THREAD.get();
    if (thread.depth == thread.backends.length) {
      thread.backends = Arrays.copyOf(thread.backends, 2 * thread.depth);
    }
    thread.backends[thread.depth++] = backend;
    return thread;
  }

  void end() {
    depth--;
  }
}
