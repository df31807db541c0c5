package org.ggmlext.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.ggmlext.benchmarks.Figure.Nanos;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class MeasurementTest {
  private final ByteArrayOutputStream progress = new ByteArrayOutputStream();
  private final ByteArrayOutputStream standardOutput = new ByteArrayOutputStream();

  @Test
  @DisplayName("What measured JVMs print goes to the progress, nothing to standard output")
  void output() throws Exception {
    Side java = new Side("Java", CallBenchmark.class, "javaToJava", Map.of());
    Side c = new Side("C", CallBenchmark.class, "javaToC", Map.of());
    Pace pace = new Pace(1, 1, 1, 2, 1, 1);
    Map<Side, Samples> samples;
    PrintStream before = System.out;
    System.setOut(print(standardOutput));
    try {
      samples =
          new Measurement(pace, print(progress))
              .run(List.of(new Comparison("downcall", java, c, new Nanos(1), "")));
    } finally {
      System.setOut(before);
    }
    assertThat(samples).containsOnlyKeys(java, c);
    assertThat(samples.values()).allSatisfy(side -> assertThat(side.median()).isPositive());
    assertThat(standardOutput.toString(StandardCharsets.UTF_8)).isEmpty();
    assertThat(progress.toString(StandardCharsets.UTF_8))
        .contains("round 1 of 1: javaToC {}")
        .contains("Using incubator modules: jdk.incubator.vector"); // each JVM's first line
  }

  private static PrintStream print(ByteArrayOutputStream bytes) {
    return new PrintStream(bytes, true, StandardCharsets.UTF_8);
  }
}
