package org.ggmlext.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.ggmlext.benchmarks.Figure.Nanos;
import org.ggmlext.benchmarks.Figure.PerSecond;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.annotations.Param;

class TableTest {
  private static final Side C = new Side("in C", CallBenchmark.class, "cToC", Map.of());
  private static final Side JAVA = new Side("in Java", CallBenchmark.class, "cToJava", Map.of());

  @Test
  @DisplayName(
      "A row of times: both sides for one part, their difference, the ratio of medians, its range")
  void times() {
    Table table = new Table();
    table.add(
        new Comparison("a node", C, JAVA, new Nanos(10), "<= 1.2"),
        new Samples().add(1000, 900, 5000).add(1000, 1000, 1000),
        new Samples().add(1100, 1100, 1100).add(1500, 1500, 1500));
    assertThat(table.toString())
        .endsWith(
            "| a node | in C | 100 ns | in Java | 130 ns | 30.00 ns | **1.300** | 1.100 .. 1.500"
                + " | <= 1.2 |\n");
  }

  @Test
  @DisplayName("A row of rates: more than 1 is faster")
  void rates() {
    Table table = new Table();
    table.add(
        new Comparison("sentences", C, JAVA, new PerSecond(32), ""),
        new Samples().add(2e9),
        new Samples().add(1e9));
    assertThat(table.toString())
        .endsWith(
            "| sentences | in C | 16.00 /s | in Java | 32.00 /s | 16.00 /s | **2.000** | 2.000 .."
                + " 2.000 |  |\n");
  }

  @Test
  @DisplayName("Every side of every comparison names a benchmark with these parameters")
  void sidesExist() throws NoSuchMethodException {
    for (Group group : Group.values()) {
      for (Comparison comparison : group.comparisons(Pace.FULL)) {
        for (Side side : new Side[] {comparison.baseline(), comparison.measured()}) {
          assertThat(side.benchmark().getMethod(side.method()))
              .satisfies(
                  method ->
                      assertThat(
                              method.isAnnotationPresent(
                                  org.openjdk.jmh.annotations.Benchmark.class))
                          .isTrue());
          assertThat(params(side.benchmark())).containsAll(side.params().keySet());
        }
      }
    }
  }

  private static Set<String> params(Class<?> benchmark) {
    return Stream.<Class<?>>iterate(benchmark, Objects::nonNull, Class::getSuperclass)
        .flatMap(type -> Arrays.stream(type.getDeclaredFields()))
        .filter(field -> field.isAnnotationPresent(Param.class))
        .map(Field::getName)
        .collect(Collectors.toSet());
  }
}
