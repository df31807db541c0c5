package org.ggmlext.internal;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Keeps what is registered, and what devices answered, while a graph is planned. After our check
 * ggml asks again which nodes are supported, and ends the process where one no longer is.
 */
public final class Planning {
  private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();

  private static volatile Consumer<Boolean> answers = held -> {};

  private Planning() {}

  /** From now on, calls this with true before each planning and with false after it. */
  public static void holdAnswersBy(Consumer<Boolean> newAnswers) {
    answers = newAnswers;
  }

  /**
   * Runs the check of a graph and its allocation. It must wait for nothing that a compute holds,
   * whose kernels may call {@link #change}.
   */
  public static boolean plan(BooleanSupplier planning) {
    Consumer<Boolean> held = answers;
    LOCK.readLock().lock();
    try {
      held.accept(true);
      try {
        return planning.getAsBoolean();
      } finally {
        held.accept(false);
      }
    } finally {
      LOCK.readLock().unlock();
    }
  }

  /**
   * Runs what may take support away, between plannings.
   *
   * @throws IllegalStateException in a callback of planning
   */
  public static void change(Runnable change) {
    if (isCallback()) {
      throw new IllegalStateException(
          "called from a callback of planning: nothing can be closed or switched on or off there");
    }
    LOCK.writeLock().lock();
    try {
      change.run();
    } finally {
      LOCK.writeLock().unlock();
    }
  }

  /**
   * Whether the current thread runs a callback of planning: it holds locks that others wait for.
   */
  public static boolean isCallback() {
    return LOCK.getReadHoldCount() > 0;
  }
}
