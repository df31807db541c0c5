package org.ggmlext.benchmarks;

import java.util.DoubleSummaryStatistics;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * The Markdown table of ratios. A ratio is that of the figures shown: for times, more than 1 is
 * slower; for rates, more than 1 is faster.
 */
final class Table {
  private static final String HEAD =
      "| what | baseline | | measured | | difference | ratio | ratio by round | goal |\n"
          + "|---|---|--:|---|--:|--:|--:|--:|---|\n";

  private final StringBuilder text = new StringBuilder(HEAD);

  /** Adds a row; both sides have the same number of rounds, at least one. */
  void add(Comparison comparison, Samples baseline, Samples measured) {
    Figure figure = comparison.figure();
    double before = figure.of(baseline.median());
    double after = figure.of(measured.median());
    DoubleSummaryStatistics ratios =
        IntStream.range(0, baseline.rounds())
            .mapToDouble(
                round -> figure.of(measured.median(round)) / figure.of(baseline.median(round)))
            .summaryStatistics();
    text.append(
        String.format(
            Locale.ROOT,
            "| %s | %s | %s | %s | %s | %s | **%.3f** | %.3f .. %.3f | %s |%n",
            comparison.title(),
            comparison.baseline().label(),
            figure.text(before),
            comparison.measured().label(),
            figure.text(after),
            figure.text(after - before),
            after / before,
            ratios.getMin(),
            ratios.getMax(),
            comparison.goal()));
  }

  @Override
  public String toString() {
    return text.toString();
  }
}
