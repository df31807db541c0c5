package org.ggmlext.benchmarks;

/**
 * Two sides, of which the table shows both and the ratio.
 *
 * @param title what is measured
 * @param baseline what it is compared with
 * @param measured what it is about
 * @param figure what is shown of the times
 * @param goal what it should reach; "" if there is no such thing
 */
record Comparison(String title, Side baseline, Side measured, Figure figure, String goal) {}
