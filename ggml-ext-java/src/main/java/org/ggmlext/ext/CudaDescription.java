package org.ggmlext.ext;

/** Describes what a step launches on the GPU; see {@link StepBuilder#launch}. */
@FunctionalInterface
public interface CudaDescription {
  /**
   * Called once for each planned step that has anything to compute; it may be called while memory
   * is only measured, so there are no addresses. It says the same for equal nodes: what a plan has
   * recorded of it is replayed for plans that are equal.
   *
   * @param context the nodes that the step computes
   * @return what to launch each time that the step runs
   * @throws Exception fails the planning of the graph; it becomes the cause of what compute throws
   */
  CudaStep describe(PrepareContext context) throws Exception;
}
