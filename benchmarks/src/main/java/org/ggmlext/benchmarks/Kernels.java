package org.ggmlext.benchmarks;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.vector.RowKernels;

/** The compared kernels, registered once for the rest of the process's life. */
final class Kernels {
  private static final Map<Author, Map<Work, Operator<NoAttributes>>> OPERATORS = registered();

  private Kernels() {}

  /** The operator that computes this work on this author's kernel. */
  static Operator<NoAttributes> operator(Work work, Author author) {
    return Objects.requireNonNull(of(OPERATORS, author).get(work));
  }

  private static Map<Work, Operator<NoAttributes>> of(
      Map<Author, Map<Work, Operator<NoAttributes>>> operators, Author author) {
    return Objects.requireNonNull(operators.get(author));
  }

  private static Map<Author, Map<Work, Operator<NoAttributes>>> registered() {
    Map<Author, Map<Work, Operator<NoAttributes>>> operators = new EnumMap<>(Author.class);
    for (Author author : Author.values()) {
      Map<Work, Operator<NoAttributes>> works = new EnumMap<>(Work.class);
      for (Work work : Work.values()) {
        works.put(
            work,
            Operator.of(
                work.operator(author),
                (sources, attributes) -> OutputSpec.like(sources.getFirst())));
      }
      operators.put(author, works);
    }

    Ggml ggml = Ggml.load();
    Device cpu = ggml.device(DeviceType.CPU);
    Extensions layer = Extensions.attach(ggml);
    of(operators, Author.JAVA).values().forEach(layer::register);
    of(operators, Author.C).values().forEach(layer::register);
    for (Work work : Work.values()) {
      layer.register(
          cpu,
          Kernel.builder(work.kernel(Author.JAVA), work.operator(Author.JAVA))
              .supports(RowKernels::supportsUnary)
              .rows(work.body()));
    }
    layer.register(cpu, KernelLibrary.load(BenchmarkLibrary.path()));
    registerDirect(cpu);
    return operators;
  }

  private static void registerDirect(Device device) {
    MethodHandle register =
        BenchmarkLibrary.function(
            "bench_register_direct", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    try {
      int status = (int) register.invokeExact(device.handle());
      if (status != 0) {
        throw new GgmlException("bench_register_direct fails with status " + status);
      }
    } catch (GgmlException e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
