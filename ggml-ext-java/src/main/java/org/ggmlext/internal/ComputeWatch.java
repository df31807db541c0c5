package org.ggmlext.internal;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Supplier;
import org.ggmlext.Backend;
import org.ggmlext.internal.callback.Failures;

/** Who is told of computes: nobody, until the extension layer is attached. */
public final class ComputeWatch {
  /**
   * A backend that is kept open, though it may be closed already.
   *
   * @param backend which one
   * @param handle its {@code ggml_backend_t}
   */
  public record Held(Backend backend, MemorySegment handle) {}

  /** One compute. */
  @FunctionalInterface
  public interface Span {
    /** Tells a compute of nobody. */
    Span NOBODY = (backends, nodes) -> {};

    /**
     * The compute is over, well or not; the backends are still held.
     *
     * @param backends that it may have run on
     * @param nodes of its graph
     */
    void end(List<Held> backends, int nodes);
  }

  private static volatile Supplier<Span> watcher = () -> Span.NOBODY;

  private ComputeWatch() {}

  /** From now on, asks this at the beginning of each compute. */
  public static void watch(Supplier<Span> newWatcher) {
    watcher = newWatcher;
  }

  /** A compute begins. */
  public static Span begin() {
    Failures.beginSeries();
    return watcher.get();
  }
}
