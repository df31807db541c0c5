package org.ggmlext.kit;

import java.util.List;
import java.util.stream.Collectors;

/**
 * What a check tried, and what came of it. Its text form is a Markdown table.
 *
 * @param subject name of the kernel or rule
 * @param seed of the generated values
 * @param rows all cases, in the order in which they were tried
 */
public record Report(String subject, long seed, List<Row> rows) {
  public Report {
    rows = List.copyOf(rows);
  }

  /**
   * A case.
   *
   * @param situation such as {@code "input 1 strided"}
   * @param inputs such as {@code "F32 [64, 12], F32 [64]"}
   * @param verdict what came of it
   * @param detail the largest error and where it is, or a reason
   */
  public record Row(String situation, String inputs, Verdict verdict, String detail) {}

  /** The rows with a verdict. */
  public List<Row> rows(Verdict verdict) {
    return rows.stream().filter(row -> row.verdict() == verdict).toList();
  }

  /** The rows of a situation. */
  public List<Row> rowsOf(String situation) {
    return rows.stream().filter(row -> row.situation().equals(situation)).toList();
  }

  /** Whether a case passed, and none failed. */
  public boolean passed() {
    return rows(Verdict.FAILED).isEmpty() && !rows(Verdict.PASSED).isEmpty();
  }

  /**
   * For tests.
   *
   * @return this
   * @throws AssertionError with the failed rows, if there are any; with all rows, if the kernel or
   *     rule took none of the cases
   */
  public Report requirePassed() {
    List<Row> failed = rows(Verdict.FAILED);
    if (!failed.isEmpty()) {
      throw new AssertionError(
          "%s failed %d of %d cases%n%s"
              .formatted(subject, failed.size(), rows.size(), table(failed)));
    }
    if (!passed()) {
      throw new AssertionError(
          "%s took none of %d cases%n%s".formatted(subject, rows.size(), table(rows)));
    }
    return this;
  }

  private static String table(List<Row> rows) {
    return rows.stream()
        .map(
            row ->
                "| %s | %s | %s | %s |"
                    .formatted(
                        row.situation(), row.inputs(), text(row.verdict()), cell(row.detail())))
        .collect(
            Collectors.joining(
                System.lineSeparator(),
                "| situation | inputs | verdict | detail |%n|---|---|---|---|%n".formatted(),
                System.lineSeparator()));
  }

  private static String text(Verdict verdict) {
    return switch (verdict) {
      case PASSED -> "passed";
      case FAILED -> "**failed**";
      case REFUSED -> "refused";
      case NOT_APPLICABLE -> "not applicable";
    };
  }

  private static String cell(String detail) {
    return detail.replace("|", "\\|").replaceAll("\\R", " ");
  }

  /** A heading, a line of counts, and a Markdown table of all cases. */
  @Override
  public String toString() {
    return "## %s%n%n%d cases: %d passed, %d failed, %d refused, %d not applicable; seed %d%n%n%s"
        .formatted(
            subject,
            rows.size(),
            rows(Verdict.PASSED).size(),
            rows(Verdict.FAILED).size(),
            rows(Verdict.REFUSED).size(),
            rows(Verdict.NOT_APPLICABLE).size(),
            seed,
            table(rows));
  }
}
