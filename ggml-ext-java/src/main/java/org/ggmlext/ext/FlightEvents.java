package org.ggmlext.ext;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import jdk.jfr.FlightRecorder;
import org.ggmlext.Backend;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.ComputeWatch;
import org.ggmlext.internal.Native;
import org.jspecify.annotations.Nullable;

/**
 * Tells the JDK's Flight Recorder of computes, new plans, captures and kernels, while it listens.
 */
final class FlightEvents {
  /** A run-time image may lack the recorder. */
  private static final boolean AVAILABLE = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private static final Set<Registration> REGISTRATIONS = ConcurrentHashMap.newKeySet();

  /** The counters of each backend when they were last told of. */
  private static final Map<Backend, BackendStats> TOLD =
      Collections.synchronizedMap(new WeakHashMap<>());

  private static final AtomicBoolean REPORTS_KERNELS = new AtomicBoolean();

  private FlightEvents() {}

  static void start() {
    if (AVAILABLE) {
      ComputeWatch.watch(FlightEvents::begin);
    }
  }

  static void opened(Registration registration) {
    REGISTRATIONS.add(registration);
  }

  /** The last figures of a kernel, which may have lived for less than a period. */
  static void closing(Registration registration) {
    if (AVAILABLE && FlightRecorder.isInitialized()) {
      kernel(registration);
    }
  }

  static void closed(Registration registration) {
    REGISTRATIONS.remove(registration);
  }

  private static ComputeWatch.Span begin() {
    if (!FlightRecorder.isInitialized()) {
      return ComputeWatch.Span.NOBODY;
    }
    if (REPORTS_KERNELS.compareAndSet(false, true)) {
      FlightRecorder.addPeriodicEvent(KernelEvent.class, FlightEvents::kernels);
    }
    ComputeEvent event = new ComputeEvent();
    event.begin();
    return (backends, nodes) -> {
      if (event.shouldCommit()) {
        event.backends =
            backends.stream().map(FlightEvents::name).collect(Collectors.joining(", "));
        event.nodes = nodes;
        event.commit();
      }
      backends.forEach(FlightEvents::backend);
    };
  }

  private static String name(ComputeWatch.Held backend) {
    return Native.string(ggml_backend_h.ggml_backend_name(backend.handle()));
  }

  private static void backend(ComputeWatch.Held backend) {
    boolean plans = new PlanEvent().isEnabled() || new PlanPictureEvent().isEnabled();
    if (!plans && !new CaptureEvent().isEnabled()) {
      return;
    }
    BackendStats now = BackendStatsReader.statsIfExtended(backend.handle());
    if (now == null) {
      return;
    }
    BackendStats before = TOLD.put(backend.backend(), now);
    long fresh = made(now) - (before == null ? 0 : made(before));
    if (plans && fresh > 0) {
      List<Plan> all = PlanReader.plans(backend.handle());
      all.subList(0, (int) Math.min(fresh, all.size())).forEach(FlightEvents::plan);
    }
    capture(name(backend), before, now);
  }

  private static long made(BackendStats stats) {
    return stats.planned() + stats.plannedLate();
  }

  static void capture(String backend, @Nullable BackendStats before, BackendStats now) {
    long known = before == null ? 0 : before.recorded() + before.reused();
    CaptureEvent event = new CaptureEvent();
    if (now.recorded() + now.reused() > known && event.isEnabled()) {
      event.backend = backend;
      event.recorded = now.recorded();
      event.reused = now.reused();
      event.replayed = now.replayed();
      event.commit();
    }
  }

  private static void plan(Plan plan) {
    PlanEvent event = new PlanEvent();
    if (event.isEnabled()) {
      event.fill(plan);
      event.commit();
    }
    PlanPictureEvent picture = new PlanPictureEvent();
    if (picture.isEnabled()) {
      picture.fill(plan);
      picture.commit();
    }
  }

  private static void kernels() {
    REGISTRATIONS.forEach(FlightEvents::kernel);
  }

  private static void kernel(Registration registration) {
    KernelEvent event = new KernelEvent();
    KernelStats stats = event.isEnabled() ? registration.statsIfKernel() : null;
    if (stats != null) {
      event.fill(registration.name(), stats);
      event.commit();
    }
  }
}
