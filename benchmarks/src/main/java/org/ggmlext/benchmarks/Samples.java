package org.ggmlext.benchmarks;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.DoubleStream;

/** The times of one side: those of each round's iterations, in nanoseconds. */
final class Samples {
  private final List<double[]> rounds = new ArrayList<>();

  /** Adds a round, which has at least one time. */
  Samples add(double... nanos) {
    rounds.add(nanos.clone());
    return this;
  }

  int rounds() {
    return rounds.size();
  }

  /** The median of all rounds' times. */
  double median() {
    return median(rounds.stream().flatMapToDouble(Arrays::stream));
  }

  /** The median of one round's times. */
  double median(int round) {
    return median(Arrays.stream(rounds.get(round)));
  }

  private static double median(DoubleStream values) {
    double[] sorted = values.sorted().toArray();
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
