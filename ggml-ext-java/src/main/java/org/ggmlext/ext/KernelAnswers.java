package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.ggmlext.Device;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.RefusedNodes;
import org.ggmlext.internal.callback.Failures;
import org.jspecify.annotations.Nullable;

/** Why kernels refuse a node of a registered operator: asks them again, and listens. */
final class KernelAnswers {
  /** What Java kernels answered while this thread listens, in the order in which they did. */
  private static final ThreadLocal<@Nullable Map<String, String>> HEARD = new ThreadLocal<>();

  private KernelAnswers() {}

  /** A Java kernel refuses a node, or fails over it. */
  static void refused(String kernel, String reason) {
    Map<String, String> heard = HEARD.get();
    if (heard != null) {
      heard.put(kernel, reason);
    }
  }

  static RefusedNodes.@Nullable Refusal explain(
      MemorySegment context, MemorySegment node, List<Device> devices) {
    String operator = OperatorNames.of(context, node);
    if (operator.equals("CUSTOM")) {
      return null;
    }
    List<String> reasons = devices.stream().map(device -> explain(node, device)).toList();
    return new RefusedNodes.Refusal(operator, String.join("; ", reasons));
  }

  private static String explain(MemorySegment node, Device device) {
    List<String> reasons = reasons(node, device);
    return reasons.isEmpty()
        ? "no kernel of it is registered on %s, or all are switched off".formatted(device.name())
        : "on %s, %s".formatted(device.name(), String.join(", ", reasons));
  }

  private static List<String> reasons(MemorySegment node, Device device) {
    Map<Registration, Long> before = FlightEvents.refusalsOfNativeKernels();
    Map<String, String> heard = new LinkedHashMap<>();
    // What an earlier call left is no reason.
    Failures.last();
    HEARD.set(heard);
    try {
      ggml_backend_h.ggml_backend_dev_supports_op(device.handle(), node);
    } finally {
      HEARD.remove();
    }
    String last = Failures.last().message();
    List<String> reasons = new ArrayList<>();
    heard.forEach((kernel, reason) -> reasons.add(text("kernel " + kernel, reason)));
    // Native kernels are not heard: the last message may be one's, and counters tell whose.
    List<String> counted =
        FlightEvents.refusalsOfNativeKernels().entrySet().stream()
            .filter(entry -> entry.getValue() > before.getOrDefault(entry.getKey(), 0L))
            .map(entry -> entry.getKey().name())
            .toList();
    String unheard = heard.containsValue(last) ? "" : last;
    if (counted.size() == 1) {
      reasons.add(text("kernel " + counted.getFirst(), unheard));
    } else if (!unheard.isEmpty()) {
      reasons.add(text("a native kernel", unheard));
    }
    return reasons;
  }

  private static String text(String kernel, String reason) {
    return kernel + " does not support it" + (reason.isEmpty() ? "" : ": " + reason);
  }
}
