package org.ggmlext.benchmarks;

import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormat;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** Measures sides by JMH, each in JVMs of its own that take turns. */
final class Measurement {
  private final Pace pace;
  private final PrintStream progress;
  private final OutputFormat jmh;

  /**
   * @param progress takes a line for each measurement, and all that the measured JVMs print
   */
  Measurement(Pace pace, PrintStream progress) {
    this.pace = pace;
    this.progress = progress;
    this.jmh = OutputFormatFactory.createFormatInstance(progress, VerboseMode.SILENT);
  }

  /** The times of all sides of the comparisons. */
  Map<Side, Samples> run(List<Comparison> comparisons) throws RunnerException {
    Map<Side, Samples> samples = new LinkedHashMap<>();
    comparisons.stream()
        .flatMap(comparison -> Stream.of(comparison.baseline(), comparison.measured()))
        .forEach(side -> samples.put(side, new Samples()));
    for (int round = 0; round < pace.rounds(); round++) {
      for (Map.Entry<Side, Samples> entry : samples.entrySet()) {
        progress.println(
            "round %d of %d: %s %s"
                .formatted(
                    round + 1, pace.rounds(), entry.getKey().method(), entry.getKey().params()));
        entry.getValue().add(measure(entry.getKey()));
      }
    }
    return samples;
  }

  private double[] measure(Side side) throws RunnerException {
    ChainedOptionsBuilder options =
        new OptionsBuilder()
            .include("^" + Pattern.quote(side.benchmark().getName() + "." + side.method()) + "$")
            .forks(1)
            .warmupIterations(pace.warmups())
            .warmupTime(TimeValue.milliseconds(pace.warmupMillis()))
            .measurementIterations(pace.iterations())
            .measurementTime(TimeValue.milliseconds(pace.millis()))
            .shouldFailOnError(true);
    side.params().forEach(options::param);
    double[] nanos =
        new Runner(options.build(), jmh)
            .run().stream()
                .flatMap(result -> result.getBenchmarkResults().stream())
                .flatMap(result -> result.getIterationResults().stream())
                .mapToDouble(iteration -> iteration.getPrimaryResult().getScore())
                .toArray();
    if (nanos.length != pace.iterations()) {
      throw new IllegalStateException(
          "%s gave %d times, expected %d".formatted(side, nanos.length, pace.iterations()));
    }
    return nanos;
  }
}
