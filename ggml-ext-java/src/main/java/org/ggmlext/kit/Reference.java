package org.ggmlext.kit;

import java.util.List;

/** What an operator should compute, in double precision. */
@FunctionalInterface
public interface Reference {
  /**
   * Computes the output.
   *
   * @param inputs the inputs' values, as rounded to their types
   * @return the output's values without gaps, the fastest dimension first
   */
  double[] compute(List<Values> inputs);
}
