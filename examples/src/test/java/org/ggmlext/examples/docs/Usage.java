package org.ggmlext.examples.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
    Plan plan = extensions.plans(backend).getFirst(); // the most recent one
    System.out.println(plan); // as text
    for (Plan.Refusal refusal : plan.refusals()) {
      System.out.println(refusal.node() + " " + refusal.kernel() + ": " + refusal.reason());
    }
    // docs: end
  }

  static void picture(Extensions extensions, Backend backend, Path file) throws IOException {
    // docs: picture
    Files.writeString(file, extensions.plans(backend).getFirst().toSvg());
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
    System.out.println(extensions.plans(backend).getFirst()); // now with times
    extensions.setProfiling(false);
    // docs: end
  }
}
