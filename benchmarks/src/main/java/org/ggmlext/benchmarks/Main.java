package org.ggmlext.benchmarks;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.ggmlext.Ggml;

/** Runs the benchmarks of the CPU and prints one Markdown table of ratios. */
public final class Main {
  private static final String USAGE =
      "usage: bench [--quick] [calls|kernels|unregistered|sentences|int8|plan]...";
  private static final String PLAN = "plan";

  private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private final Pace pace;
  private final Set<Group> groups;
  private final boolean plan;

  private Main(Pace pace, Set<Group> groups, boolean plan) {
    this.pace = pace;
    this.groups = groups;
    this.plan = plan;
  }

  /**
   * @param args {@code --quick}: short iterations; names of subjects: only these
   */
  public static void main(String[] args) throws Exception {
    Pace pace = Pace.FULL;
    boolean plan = false;
    Set<Group> groups = EnumSet.noneOf(Group.class);
    for (String argument : args) {
      if (argument.equals("--quick")) {
        pace = Pace.QUICK;
      } else if (argument.equals(PLAN)) {
        plan = true;
      } else if (!Arrays.stream(Group.values())
          .filter(group -> group.argument().equals(argument))
          .map(groups::add)
          .findFirst()
          .isPresent()) {
        System.err.println("bench: there is no \"" + argument + "\"");
        System.err.println(USAGE);
        System.exit(2);
      }
    }
    if (groups.isEmpty() && !plan) {
      groups = EnumSet.allOf(Group.class);
      plan = true;
    }
    new Main(pace, groups, plan).run();
  }

  private void run() throws Exception {
    out.println(Machine.describe());
    if (!groups.isEmpty()) {
      Table table = new Table();
      Measurement measurement = new Measurement(pace, System.err);
      for (Group group : groups) {
        List<Comparison> comparisons = group.comparisons(pace);
        Map<Side, Samples> samples = measurement.run(comparisons);
        comparisons.forEach(
            comparison ->
                table.add(
                    comparison,
                    Objects.requireNonNull(samples.get(comparison.baseline())),
                    Objects.requireNonNull(samples.get(comparison.measured()))));
      }
      out.println(table);
    }
    if (plan) {
      out.println("Planning (least times):");
      out.println();
      out.println(PlanBench.run(Ggml.load()));
    }
    out.printf(Locale.ROOT, "Load average after: %.2f%n", Machine.load());
  }
}
