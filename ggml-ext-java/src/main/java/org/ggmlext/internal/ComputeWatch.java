package org.ggmlext.internal;

import java.util.List;
import java.util.function.Supplier;
import org.ggmlext.Backend;

/** Who is told of computes: nobody, until the extension layer is attached. */
public final class ComputeWatch {
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
    void end(List<Backend> backends, int nodes);
  }

  private static volatile Supplier<Span> watcher = () -> Span.NOBODY;

  private ComputeWatch() {}

  /** From now on, asks this at the beginning of each compute. */
  public static void watch(Supplier<Span> newWatcher) {
    watcher = newWatcher;
  }

  /** A compute begins. */
  public static Span begin() {
    return watcher.get();
  }
}
