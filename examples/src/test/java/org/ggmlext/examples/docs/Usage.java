package org.ggmlext.examples.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.LibraryRegistration;
import org.ggmlext.ext.Plan;
import org.ggmlext.ext.Registration;

/** The calls that the documents show; SnippetsTest runs them. */
final class Usage {
  private Usage() {}

  static Tensor create(Context nodes, Tensor x) {
    // docs: create
    Tensor y = Swish.OPERATOR.create(nodes, new Swish.Attributes(1.5f), x);
    // docs: end
    return y;
  }

  static LibraryRegistration library(Extensions extensions, Device cpu, Path file) {
    // docs: library
    KernelLibrary library = KernelLibrary.load(file);
    LibraryRegistration registration = extensions.register(cpu, library);
    // docs: end
    return registration;
  }

  static float[] lifetimes(Tensor x) {
    // docs: order
    Ggml ggml = Ggml.load();
    Device cpu = ggml.device(DeviceType.CPU);
    Extensions extensions = Extensions.attach(ggml);
    try (Registration _ = extensions.register(Swish.OPERATOR);
        Registration _ = extensions.register(cpu, Kernels.ROWS);
        Context nodes = Context.forGraph(8);
        Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      Tensor y = Swish.OPERATOR.create(nodes, new Swish.Attributes(1.5f), x).asOutput();
      scheduler.compute(nodes.newGraph(8).expand(y));
      return y.getFloats();
    }
    // docs: end
  }

  static void abort(Backend backend) {
    // docs: abort
    AtomicBoolean stop = new AtomicBoolean();
    backend.setAbort(stop::get);
    // docs: end
  }

  static String failure(Scheduler scheduler, Graph graph) {
    // docs: failure
    try {
      scheduler.compute(graph);
    } catch (GgmlException e) {
      Throwable thrown =
          e.getCause(); // what the kernel threw, the same object; null for native code
      return e.getMessage() + " / " + thrown;
    }
    // docs: end
    return "";
  }

  static void plans(Extensions extensions, Backend backend) {
    // docs: plans
    for (Plan plan : extensions.plans(backend)) { // the most recent one first
      System.out.println(plan); // as text
      for (Plan.Refusal refusal : plan.refusals()) {
        System.out.println(refusal.node() + " " + refusal.kernel() + ": " + refusal.reason());
      }
    }
    // docs: end
  }

  static void order(Extensions extensions, Backend backend) {
    // docs: order of nodes
    for (Plan plan : extensions.plans(backend)) {
      System.out.println(plan.nodes().stream().map(node -> node.op() + " " + node.name()).toList());
    }
    // docs: end
  }

  static void picture(Extensions extensions, Backend backend, Path file) throws IOException {
    // docs: picture
    List<Plan> plans = extensions.plans(backend);
    if (!plans.isEmpty()) {
      Files.writeString(file, plans.getFirst().toSvg());
    }
    // docs: end
  }

  static void attached(Ggml ggml) {
    // docs: attached
    Extensions extensions = Extensions.attach(ggml);
    System.out.println(extensions.abi());
    // docs: end
  }

  static void profile(Extensions extensions, Scheduler scheduler, Graph graph, Backend backend) {
    // docs: profile
    extensions.setProfiling(true);
    scheduler.compute(graph);
    extensions.plans(backend).forEach(System.out::println); // now with times
    extensions.setProfiling(false);
    // docs: end
  }

  static void onAndOff(
      Registration registration, Scheduler scheduler, Graph graph, Runnable inputs) {
    // docs: on and off
    for (boolean on : List.of(false, true, false, true)) {
      registration.setEnabled(on);
      scheduler.reset(); // it is planned anew
      scheduler.allocate(graph);
      inputs.run(); // writes the inputs that the scheduler gave memory
      scheduler.compute(graph); // the first one is not counted
      long start = System.nanoTime();
      for (int i = 0; i < 10; i++) {
        scheduler.compute(graph);
      }
      System.out.printf("%s: %.3f ms%n", on ? "on" : "off", (System.nanoTime() - start) / 1e7);
    }
    // docs: end
  }
}
