package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.Collectors;
import org.ggmlext.Device;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.RefusedNodes;
import org.jspecify.annotations.Nullable;

/** Why kernels refuse a node of a registered operator: asks them again. */
final class KernelAnswers {
  private KernelAnswers() {}

  static RefusedNodes.@Nullable Refusal explain(MemorySegment node, List<Device> devices) {
    String operator = Native.string(ggml_ext_h.ggml_ext_op_name(node));
    if (operator.equals("CUSTOM")) {
      return null;
    }
    String reasons =
        devices.stream().map(device -> explain(node, device)).collect(Collectors.joining("; "));
    return new RefusedNodes.Refusal(operator, reasons);
  }

  private static String explain(MemorySegment node, Device device) {
    if (!ggml_ext_h.ggml_ext_is_attached(device.handle())) {
      return "%s is not extended".formatted(device.name());
    }
    List<Plan.Refusal> refusals = PlanReader.single(device.handle(), node).refusals();
    return refusals.isEmpty()
        ? "no kernel of it is registered on %s".formatted(device.name())
        : "on %s, %s"
            .formatted(
                device.name(),
                refusals.stream().map(KernelAnswers::text).collect(Collectors.joining(", ")));
  }

  private static String text(Plan.Refusal refusal) {
    return "kernel %s: %s".formatted(refusal.kernel(), refusal.reason());
  }
}
