package org.ggmlext.ext;

import org.jspecify.annotations.Nullable;

/** Frees what a {@link Preparation} made. */
@FunctionalInterface
public interface Destruction {
  /**
   * Called once when the step's plan is dropped.
   *
   * @param state the step's {@link Prepared#state}
   * @throws Exception is logged; there is nobody to throw it to
   */
  void destroy(@Nullable Object state) throws Exception;
}
