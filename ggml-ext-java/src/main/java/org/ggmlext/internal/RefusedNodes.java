package org.ggmlext.internal;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.ggmlext.Device;
import org.jspecify.annotations.Nullable;

/**
 * Who knows why devices refuse nodes of registered operators, which ggml itself knows as CUSTOM
 * only: nobody, until the extension layer is attached.
 */
public final class RefusedNodes {
  /**
   * Why a node cannot be computed.
   *
   * @param operator the name of its operator
   * @param reason what the devices' kernels said
   */
  public record Refusal(String operator, String reason) {}

  /** Explains refusals. */
  @FunctionalInterface
  public interface Explainer {
    /** Asks the devices again; null if the node is of no registered operator. */
    @Nullable Refusal explain(MemorySegment node, List<Device> devices);
  }

  private static volatile Explainer explainer = (node, devices) -> null;

  private RefusedNodes() {}

  /** From now on, asks this. */
  public static void explainBy(Explainer newExplainer) {
    explainer = newExplainer;
  }

  /** Why the devices refuse a node; null if it is of no registered operator. */
  public static @Nullable Refusal explain(MemorySegment node, List<Device> devices) {
    return explainer.explain(node, devices);
  }
}
