package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_kernel_stats;
import org.ggmlext.internal.Planning;
import org.jspecify.annotations.Nullable;

/**
 * An operator, kernel, rule or optimiser that is known to the extension layer until this is closed.
 *
 * <p>A registration takes effect for support queries at once, for planning when a graph is
 * allocated the next time. A graph that is already planned keeps its kernels until then.
 *
 * <p>Safe for use by several threads.
 */
public final class Registration implements AutoCloseable {
  private final String name;
  private final Kind kind;
  private MemorySegment handle;
  private boolean enabled = true;

  enum Kind {
    OF_JAVA,
    OPTIMIZER,
    OF_LIBRARY
  }

  Registration(String name, MemorySegment handle) {
    this(name, handle, Kind.OF_JAVA);
  }

  Registration(String name, MemorySegment handle, Kind kind) {
    this.name = name;
    this.handle = handle;
    this.kind = kind;
    FlightEvents.opened(this);
  }

  /** The name of what is registered. */
  public String name() {
    return name;
  }

  /**
   * Whether an operator is registered: it has no counters and no switch, its kernels have.
   *
   * @throws IllegalStateException if the registration is closed
   */
  public synchronized boolean isOperator() {
    check();
    return statsIfKernel() == null;
  }

  /** Whether a {@link GraphOptimizer} is registered, which computes nothing itself. */
  public boolean isOptimizer() {
    return kind == Kind.OPTIMIZER;
  }

  boolean isOfLibrary() {
    return kind == Kind.OF_LIBRARY;
  }

  /** Whether it has not been closed. */
  public synchronized boolean isOpen() {
    return handle.address() != 0;
  }

  private void check() {
    if (!isOpen()) {
      throw new IllegalStateException("the registration of " + name + " is closed");
    }
  }

  /**
   * Counters since the registration, of a kernel or rule.
   *
   * @throws IllegalArgumentException if an operator is registered: its kernels have counters
   * @throws IllegalStateException if the registration is closed
   */
  public synchronized KernelStats stats() {
    if (isOperator()) {
      throw new IllegalArgumentException(name + " is an operator: ask its kernel's registration");
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = ggml_ext_kernel_stats.allocate(arena);
      ExtStatus.check(read(stats));
      return copy(stats);
    }
  }

  /** Its counters; null if it is closed, or no kernel or rule. */
  synchronized @Nullable KernelStats statsIfKernel() {
    if (!isOpen()) {
      return null;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = ggml_ext_kernel_stats.allocate(arena);
      return read(stats) == ggml_ext_h.GGML_EXT_STATUS_SUCCESS() ? copy(stats) : null;
    }
  }

  private int read(MemorySegment stats) {
    ggml_ext_kernel_stats.struct_size(stats, stats.byteSize());
    return ggml_ext_h.ggml_ext_get_kernel_stats(handle, stats);
  }

  private static KernelStats copy(MemorySegment stats) {
    return new KernelStats(
        ggml_ext_kernel_stats.n_supported(stats),
        ggml_ext_kernel_stats.n_unsupported(stats),
        ggml_ext_kernel_stats.n_planned(stats),
        ggml_ext_kernel_stats.n_executed(stats),
        ggml_ext_kernel_stats.n_failed(stats),
        ggml_ext_kernel_stats.n_refused(stats),
        ggml_ext_kernel_stats.time_ns(stats),
        ggml_ext_kernel_stats.n_timed(stats));
  }

  /**
   * Switches a kernel or rule off and on again. Waits for graphs that are just being allocated.
   *
   * @throws IllegalStateException if the registration is closed, or this is called by a callback of
   *     an allocation
   */
  public void setEnabled(boolean enabled) {
    Planning.change(() -> enable(enabled));
  }

  private synchronized void enable(boolean enabled) {
    check();
    ExtStatus.check(ggml_ext_h.ggml_ext_set_enabled(handle, enabled));
    this.enabled = enabled;
  }

  /** Whether it is switched on here; an environment variable may switch it off all the same. */
  public synchronized boolean isEnabled() {
    return enabled;
  }

  /**
   * Withdraws what is registered. Harmless if done before. Waits for graphs that are just being
   * allocated.
   *
   * @throws IllegalStateException if it is in use, and then it stays registered: a kernel or rule
   *     with which a live backend has planned (close the backend first), or an operator that has
   *     kernels; or if this is called by a callback of an allocation
   */
  @Override
  public void close() {
    close(List.of(this));
  }

  /**
   * Withdraws several in one step. Harmless for those that are closed.
   *
   * @throws IllegalStateException if one is in use, and then all stay registered
   */
  static void close(List<Registration> registrations) {
    // Before the registrations' own locks: a callback of planning may ask for their counters.
    Planning.change(() -> closeLocked(registrations, 0));
  }

  /** Locks the registrations from this one on, in their order, and withdraws all. */
  private static void closeLocked(List<Registration> registrations, int locked) {
    if (locked < registrations.size()) {
      synchronized (registrations.get(locked)) {
        closeLocked(registrations, locked + 1);
      }
      return;
    }
    List<Registration> open = registrations.stream().filter(Registration::isOpen).toList();
    open.forEach(FlightEvents::closing);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handles = arena.allocate(ValueLayout.ADDRESS, Math.max(1, open.size()));
      for (int i = 0; i < open.size(); i++) {
        // Kernels before the operators that they serve, which were registered first.
        handles.setAtIndex(ValueLayout.ADDRESS, i, open.get(open.size() - 1 - i).handle);
      }
      ExtStatus.check(ggml_ext_h.ggml_ext_unregister_all(handles, open.size()));
    }
    for (Registration registration : open) {
      registration.handle = MemorySegment.NULL;
      FlightEvents.closed(registration);
    }
  }

  @Override
  public String toString() {
    return name + (isOpen() ? "" : " (closed)");
  }
}
