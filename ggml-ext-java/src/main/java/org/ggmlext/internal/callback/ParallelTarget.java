package org.ggmlext.internal.callback;

/** The Java object behind one call of the parallel service. */
public interface ParallelTarget {
  /** One share; called by several threads at once. */
  void run(int ith, int nth) throws Exception;

  /** Hears what a share threw. */
  void failed(Throwable failure);
}
