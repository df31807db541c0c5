package org.ggmlext.internal;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * When a native object may be freed: once it is closed and its last user is done. A close during a
 * use therefore returns at once, and the object is freed by the user that ends last.
 *
 * <p>Safe for use by several threads.
 */
public final class Lifetime {
  private static final int CLOSED = Integer.MIN_VALUE;

  private final AtomicInteger uses = new AtomicInteger();
  private final AtomicBoolean freed = new AtomicBoolean();
  private final String what;
  private final Runnable free;

  /**
   * A lifetime that begins now.
   *
   * @param what names the object in messages
   * @param free frees it; run once, by the thread that ends the last use
   */
  public Lifetime(String what, Runnable free) {
    this.what = what;
    this.free = free;
  }

  /** Begins a use if the object is open. Each true must be followed by one {@link #end}. */
  public boolean tryBegin() {
    int old = uses.getAndIncrement();
    if (old >= 0) {
      return true;
    }
    end();
    return false;
  }

  /**
   * Begins a use. Must be followed by one {@link #end}.
   *
   * @throws IllegalStateException if the object is closed
   */
  public void begin() {
    if (!tryBegin()) {
      throw closed();
    }
  }

  /** Ends a use. */
  public void end() {
    if (uses.decrementAndGet() == CLOSED) {
      freeOnce();
    }
  }

  /** Closes: no use begins any more. Harmless if closed already. */
  public void close() {
    int now = uses.getAndUpdate(n -> n | CLOSED);
    if (now == 0) {
      freeOnce();
    }
  }

  /** Whether {@link #close} was called. */
  public boolean isClosed() {
    return uses.get() < 0;
  }

  /**
   * Throws if the object is closed.
   *
   * @throws IllegalStateException if it is
   */
  public void check() {
    if (isClosed()) {
      throw closed();
    }
  }

  /** What a use after closing throws. */
  public IllegalStateException closed() {
    return new IllegalStateException(what + " is closed");
  }

  private void freeOnce() {
    // A failed tryBegin passes through CLOSED once more: only the first passage frees.
    if (freed.compareAndSet(false, true)) {
      free.run();
    }
  }
}
