package org.ggmlext.kit;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.ggmlext.Context;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.Registration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The code of docs/verification.md. */
class VerificationDocTest {
  private static final Pattern BLOCK = Pattern.compile("```java\\R(.*?)```", Pattern.DOTALL);

  private final KitBench bench = new KitBench();

  @AfterEach
  void close() {
    bench.close();
  }

  @Test
  @DisplayName("KIT-1: the operator check of the documentation runs")
  void operator() {
    Operator<KitBench.Swish> swish = KitBench.swish();
    bench.register(swish);
    Registration kernel =
        bench.register(Kernel.rows(KitBench.unique("doc.swish"), swish, KitBench.swishRows(swish)));

    OperatorCheck.of(
            kernel,
            (context, in) -> swish.create(context, new KitBench.Swish(1), in.get(0)),
            in -> {
              double[] x = in.get(0).toArray();
              for (int i = 0; i < x.length; i++) {
                x[i] = x[i] / (1 + Math.exp(-x[i]));
              }
              return x;
            })
        .inputs(shape -> List.of(Input.of(Type.F32, shape)))
        .tolerance(1e-6, 1e-6)
        .run()
        .requirePassed();
  }

  @Test
  @DisplayName("KIT-1: the rule check of the documentation runs")
  void rule() {
    Registration rule = bench.register(KitBench.scaleAdd(0));

    Report report =
        RuleCheck.of(rule, (context, in) -> context.add(context.scale(in.get(0), 3), in.get(1)))
            .inputs(shape -> List.of(Input.of(Type.F32, shape), Input.of(Type.F32, shape)))
            .run();
    report.requirePassed();

    assertThat(report.toString()).contains("| plain |");
  }

  @Test
  @DisplayName("JAVA-8: the comparison of the documentation runs")
  void compare() {
    Registration rule = bench.register(KitBench.scaleAdd(0));
    try (Context leaves = Context.forTensors(2);
        Context context = Context.forGraph(8)) {
      Tensor x = leaves.newTensor(Type.F32, 8);
      leaves.allocate(Ggml.load().device(DeviceType.CPU));
      x.setFloats(1, 2, 3, 4, 5, 6, 7, 8);
      Graph graph = context.newGraph(8).expand(context.add(context.scale(x, 3), x));

      Verification verification = Verification.compare(graph, rule);
      assertThat(verification.fired()).isTrue();
      assertThat(verification.repeatable()).isTrue();
      assertThat(verification.maxAbsolute()).as(verification.toString()).isLessThan(1e-5);
    }
  }

  @Test
  @DisplayName("KIT-1, JAVA-8: each code block of docs/verification.md is code of this test")
  void blocks() throws Exception {
    String source =
        squeeze(Files.readString(Path.of("src/test/java/org/ggmlext/kit/VerificationDocTest.java")))
            .replace("KitBench.Swish", "Swish");
    Matcher blocks = BLOCK.matcher(Files.readString(Path.of("../docs/verification.md")));
    int count = 0;
    while (blocks.find()) {
      assertThat(source).contains(squeeze(blocks.group(1)));
      count++;
    }
    assertThat(count).isEqualTo(3);
  }

  private static String squeeze(String code) {
    return code.replaceAll("\\s+", " ").strip();
  }
}
