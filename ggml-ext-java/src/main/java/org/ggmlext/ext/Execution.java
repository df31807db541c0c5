package org.ggmlext.ext;

/** The execution of a step in whole form; valid during the call that got it only. */
public final class Execution extends Step {
  private final long backend;

  Execution(PlannedStep planned, long backend) {
    super(planned);
    this.backend = backend;
  }

  /**
   * Runs a task on the CPU backend's own threads, and returns when all of its shares are done. Only
   * on the thread that the kernel was called on.
   *
   * @param task called once for each share, at once by several threads
   * @throws IllegalStateException if the backend is not a CPU backend, or its abort callback asked
   *     to stop
   * @throws Exception the first exception that a share threw
   */
  public void parallel(ParallelTask task) throws Exception {
    CpuParallel.run(backend, task);
  }
}
