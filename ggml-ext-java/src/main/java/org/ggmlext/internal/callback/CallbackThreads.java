package org.ggmlext.internal.callback;

import java.util.concurrent.atomic.AtomicInteger;

/** Makes threads that C brought along look like threads of the application. */
public final class CallbackThreads {
  private static final AtomicInteger COUNT = new AtomicInteger();
  private static final ThreadLocal<Boolean> ADOPTED = new ThreadLocal<>();

  private CallbackThreads() {}

  /**
   * Gives the current thread a class loader and a name where it came without: such a thread was
   * made outside of Java.
   */
  public static void adopt() {
    Thread thread = Thread.currentThread();
    if (thread.getContextClassLoader() == null) {
      thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
      thread.setName("ggml-" + COUNT.incrementAndGet());
      ADOPTED.set(true);
    }
  }

  /** Whether the current thread was adopted: what it runs is part of a call of another thread. */
  public static boolean isAdopted() {
    return ADOPTED.get() != null;
  }
}
