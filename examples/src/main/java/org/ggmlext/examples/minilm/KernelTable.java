package org.ggmlext.examples.minilm;

import java.io.PrintStream;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.ggmlext.ext.Plan;

/** A table of which kernel runs which kind of node. */
final class KernelTable {
  private static final String NATIVE = "ggml";

  private KernelTable() {}

  /** How many nodes of each operation each kernel runs: {@code "ADD"} to {@code {"ggml" to 40}}. */
  static Map<String, Map<String, Long>> of(Plan plan) {
    return plan.steps().stream()
        .flatMap(
            step ->
                plan.nodes().subList(step.first(), step.first() + step.count()).stream()
                    .map(
                        node ->
                            Map.entry(
                                node.op(), Objects.requireNonNullElse(step.kernel(), NATIVE))))
        .collect(
            Collectors.groupingBy(
                Map.Entry::getKey,
                TreeMap::new,
                Collectors.groupingBy(Map.Entry::getValue, TreeMap::new, Collectors.counting())));
  }

  static void print(Plan plan, PrintStream out) {
    out.printf("%-26s %5s  %s%n", "node", "count", "kernel");
    of(plan)
        .forEach(
            (op, kernels) ->
                kernels.forEach(
                    (kernel, count) -> out.printf("%-26s %5d  %s%n", op, count, kernel)));
  }
}
