package org.ggmlext.benchmarks;

import java.util.Locale;

/** What the table shows of a measured time. */
sealed interface Figure {
  /** The figure for a time in nanoseconds. */
  double of(double nanos);

  /** Its unit. */
  String unit();

  /** The figure as text, with three or more digits that count. */
  default String text(double value) {
    double size = Math.abs(value);
    String format = size >= 1000 ? "%,.0f %s" : size >= 100 ? "%.0f %s" : "%.2f %s";
    return String.format(Locale.ROOT, format, value, unit());
  }

  /** Nanoseconds for each of so many equal parts. */
  record Nanos(int parts) implements Figure {
    @Override
    public double of(double nanos) {
      return nanos / parts;
    }

    @Override
    public String unit() {
      return "ns";
    }
  }

  /** How many of the things, of which so many are done at once, are done in a second. */
  record PerSecond(int things) implements Figure {
    @Override
    public double of(double nanos) {
      return things * 1e9 / nanos;
    }

    @Override
    public String unit() {
      return "/s";
    }
  }
}
