package org.ggmlext.kit;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.ggmlext.Backend;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Plan;
import org.ggmlext.internal.callback.Failures;

/** Backends of one device (and the CPU behind it), which nobody else uses. */
final class Session implements AutoCloseable {
  private final Extensions extensions = Extensions.attach(Ggml.get());
  private final List<Backend> backends = new ArrayList<>();

  /** Backends with as many threads as they come with. */
  Session(List<Device> devices) {
    try {
      for (Device device : devices) {
        backends.add(device.newBackend());
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /** A device, and the CPU behind it where it is another one. */
  static List<Device> devices(Device device) {
    return device.type() == DeviceType.CPU
        ? List.of(device)
        : List.of(device, Ggml.get().device(DeviceType.CPU));
  }

  Backend backend() {
    return backends.getFirst();
  }

  Scheduler newScheduler() {
    return Scheduler.of(backends, Scheduler.DEFAULT_GRAPH_SIZE);
  }

  void threads(int count) {
    for (Backend backend : backends) {
      if (backend.device().type() == DeviceType.CPU) {
        backend.threads(count);
      }
    }
  }

  /** The first node that none of the devices can compute, "" if there is none. */
  String unsupported(Graph graph) {
    for (Tensor node : graph.nodes()) {
      // What an earlier call left is no reason.
      Failures.last();
      if (backends.stream().noneMatch(backend -> backend.device().supportsOp(node))) {
        String reason = Failures.last().message();
        return "no device computes %s -> %s%s"
            .formatted(node.op(), node, reason.isEmpty() ? "" : ": " + reason);
      }
    }
    return "";
  }

  /** Plans of all backends. */
  List<Plan> plans() {
    return backends.stream().flatMap(backend -> extensions.plans(backend).stream()).toList();
  }

  /** Why the most recent plans do not have a kernel or rule. */
  Set<String> reasons(String kernel) {
    Set<String> reasons = new LinkedHashSet<>();
    for (Backend backend : backends) {
      List<Plan> plans = extensions.plans(backend);
      if (!plans.isEmpty()) {
        plans.getFirst().refusals().stream()
            .filter(refusal -> refusal.kernel().equals(kernel))
            .forEach(refusal -> reasons.add(refusal.reason()));
      }
    }
    return reasons;
  }

  @Override
  public void close() {
    backends.forEach(Backend::close);
  }
}
