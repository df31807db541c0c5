package org.ggmlext.ext;

/** The whole form of a kernel: called once on one thread; it may ask for parallel execution. */
@FunctionalInterface
public non-sealed interface WholeBody extends KernelBody {
  /**
   * Computes the whole step.
   *
   * @param execution views and services, valid during this call only
   * @throws Exception fails the compute, and is the cause of what it throws
   */
  void execute(Execution execution) throws Exception;
}
