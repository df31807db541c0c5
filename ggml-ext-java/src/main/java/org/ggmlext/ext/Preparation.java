package org.ggmlext.ext;

/** Says what a kernel needs for a step; for kernels whose body is a lambda. */
@FunctionalInterface
public interface Preparation {
  /**
   * As {@link KernelBody#prepare}.
   *
   * @param context the nodes that the step computes
   * @return what the step needs
   * @throws Exception fails the planning of the graph; it becomes the cause of what compute throws
   */
  Prepared prepare(PrepareContext context) throws Exception;
}
