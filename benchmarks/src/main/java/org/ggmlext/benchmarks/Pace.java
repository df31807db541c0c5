package org.ggmlext.benchmarks;

/**
 * How long it is measured.
 *
 * @param rounds how often each side gets a JVM of its own, the sides of a group taking turns
 * @param warmups iterations that do not count
 * @param warmupMillis length of such an iteration; the JIT needs seconds for vector code
 * @param iterations iterations that count
 * @param millis length of such an iteration
 * @param threads most threads of ggml in the benchmarks of kernels
 */
record Pace(int rounds, int warmups, int warmupMillis, int iterations, int millis, int threads) {
  static final Pace QUICK = new Pace(2, 4, 1000, 3, 250, 1);
  static final Pace FULL = new Pace(5, 5, 2000, 5, 1000, 2);
}
