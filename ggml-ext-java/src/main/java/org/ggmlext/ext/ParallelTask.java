package org.ggmlext.ext;

/** A share of work that {@link Execution#parallel} runs on each of the backend's threads. */
@FunctionalInterface
public interface ParallelTask {
  /**
   * Computes one share.
   *
   * @param ith number of this share, {@code 0 .. nth - 1}
   * @param nth how many shares there are
   * @throws Exception fails the step
   */
  void run(int ith, int nth) throws Exception;
}
