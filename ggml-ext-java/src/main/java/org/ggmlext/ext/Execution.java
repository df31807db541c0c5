package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;

/** The execution of a step in whole form; valid during the call that got it only. */
public final class Execution extends Step {
  private final MemorySegment backend;
  private final Thread thread = Thread.currentThread();
  private volatile boolean over;

  Execution(PlannedStep planned, long backend) {
    super(planned);
    this.backend = MemorySegment.ofAddress(backend);
  }

  /**
   * Runs a task on the CPU backend's own threads, and returns when all of its shares are done. Only
   * on the thread that the kernel was called on.
   *
   * @param task called once for each share, at once by several threads
   * @throws IllegalStateException if the backend is not a CPU backend, its abort callback asked to
   *     stop, or the call is over or was made on another thread
   * @throws Exception the first exception that a share threw
   */
  public void parallel(ParallelTask task) throws Exception {
    check();
    CpuParallel.run(backend, task);
  }

  /**
   * The GPU, on which a kernel of a CUDA device enqueues its work. Only on the thread that the
   * kernel was called on.
   *
   * @throws IllegalStateException if the backend is no CUDA backend, or the call is over or was
   *     made on another thread
   */
  public CudaContext cuda() {
    check();
    return CudaContext.of(this);
  }

  MemorySegment backend() {
    return backend;
  }

  /** The backend is sure to be there during the call alone, and elsewhere that may end any time. */
  void check() {
    if (over) {
      throw new IllegalStateException("the execution of " + planned + " is over");
    }
    if (!Thread.currentThread().equals(thread)) {
      throw new IllegalStateException(
          "the execution of %s is used on %s, expected %s, on which the kernel was called"
              .formatted(planned, Thread.currentThread(), thread));
    }
  }

  void end() {
    over = true;
  }
}
