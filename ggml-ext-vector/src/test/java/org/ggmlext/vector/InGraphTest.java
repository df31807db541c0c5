package org.ggmlext.vector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.Registration;
import org.ggmlext.kit.Input;
import org.ggmlext.kit.OperatorCheck;
import org.ggmlext.kit.Report;
import org.ggmlext.kit.RuleCheck;
import org.ggmlext.kit.Verdict;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Row kernels with the Vector API, as kernels of graphs. */
class InGraphTest {
  private final Extensions extensions = Extensions.attach(Ggml.load());
  private final Device cpu = Ggml.load().device(DeviceType.CPU);

  @Test
  @DisplayName("JAVA-6: an operator's kernel with the Vector API runs inside graphs")
  void operator() {
    Operator<NoAttributes> silu =
        Operator.of("test.vector_silu.v1", (sources, none) -> OutputSpec.like(sources.get(0)));
    try (Registration _ = extensions.register(silu);
        Registration kernel =
            extensions.register(
                cpu,
                Kernel.builder("test.vector_silu.java", silu)
                    .supports(RowKernels::supportsUnary)
                    .rows(RowKernels.unary(Activations::silu)))) {
      Report report =
          OperatorCheck.of(
                  kernel,
                  (context, in) -> silu.create(context, in.get(0)),
                  in -> {
                    double[] x = in.get(0).toArray();
                    for (int i = 0; i < x.length; i++) {
                      x[i] = x[i] / (1 + Math.exp(-x[i]));
                    }
                    return x;
                  })
              .inputs(shape -> List.of(Input.of(Type.F32, shape).between(-20, 20)))
              .tolerance(1e-6, 1e-5)
              // The interpreter and the compiler compute the exponential in two ways.
              .bitsMayDiffer()
              .run()
              .requirePassed();
      assertThat(report.rowsOf("plain")).allMatch(row -> row.verdict() == Verdict.PASSED);
      assertThat(report.rowsOf("input 0 strided")).anyMatch(row -> row.verdict() == Verdict.PASSED);
      assertThat(report.rowsOf("input 0 transposed"))
          .filteredOn(row -> row.verdict() == Verdict.REFUSED)
          .isNotEmpty()
          .allSatisfy(row -> assertThat(row.detail()).contains("gaps in its rows"));
    }
  }

  @Test
  @DisplayName("JAVA-6: Kernel.rows takes a row kernel as it is")
  void rows() {
    Operator<NoAttributes> sum =
        Operator.of("test.vector_sum.v1", (sources, none) -> OutputSpec.like(sources.get(0)));
    try (Registration _ = extensions.register(sum);
        Registration kernel =
            extensions.register(
                cpu, Kernel.rows("test.vector_sum.java", sum, RowKernels.binary(Rows::add)))) {
      OperatorCheck.of(
              kernel,
              (context, in) ->
                  sum.create(context, context.cont(in.get(0)), context.cont(in.get(1))),
              in -> {
                double[] a = in.get(0).toArray();
                double[] b = in.get(1).toArray();
                for (int i = 0; i < a.length; i++) {
                  a[i] += b[i];
                }
                return a;
              })
          .inputs(shape -> List.of(Input.of(Type.F32, shape), Input.of(Type.F32, shape)))
          .run()
          .requirePassed();
    }
  }

  @Test
  @DisplayName("JAVA-6, KERNEL-5: an override of ADD with the Vector API equals the native kernel")
  void override() {
    try (Registration kernel =
        extensions.register(
            cpu,
            Kernel.builder("test.vector_add.java", "ADD")
                .supports(RowKernels::supportsBinary)
                .rows(RowKernels.binary(Rows::add)))) {
      RuleCheck.of(kernel, (context, in) -> context.add(in.get(0), in.get(1)))
          .inputs(shape -> List.of(Input.of(Type.F32, shape), Input.of(Type.F32, shape)))
          .tolerance(0, 0)
          .run()
          .requirePassed();
    }
  }
}
