package org.ggmlext.ext;

import org.jspecify.annotations.Nullable;

/**
 * What a kernel or a fusion rule does when its step runs: {@link TaskBody}, run by all of the
 * backend's threads (the normal form), or {@link WholeBody}, called once on one thread.
 */
public sealed interface KernelBody permits TaskBody, WholeBody {
  /**
   * Called once for each planned step; it may run while memory is only measured, so there are no
   * addresses. Metadata is fixed until {@link #destroy}.
   *
   * @param context the nodes that the step computes
   * @return what the step needs
   * @throws Exception fails the planning of the graph; it becomes the cause of what compute throws
   */
  default Prepared prepare(PrepareContext context) throws Exception {
    return Prepared.NOTHING;
  }

  /**
   * Called once when the step's plan is dropped.
   *
   * @param state what {@link #prepare} put into {@link Prepared#state}
   * @throws Exception is logged; there is nobody to throw it to
   */
  default void destroy(@Nullable Object state) throws Exception {}
}
