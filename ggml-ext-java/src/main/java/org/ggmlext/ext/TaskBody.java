package org.ggmlext.ext;

import java.util.Objects;

/**
 * The task form of a kernel: all of the backend's threads run it at once, each on its own share.
 */
@FunctionalInterface
public non-sealed interface TaskBody extends KernelBody {
  /**
   * Computes task {@link Task#ith} of {@link Task#nth} in phase {@link Task#phase}.
   *
   * @param task the share of the work, valid during this call only
   * @throws Exception fails the compute, and is the cause of what it throws
   */
  void run(Task task) throws Exception;

  /**
   * A body that computes ranges of the output's rows; each task gets an equal share of them.
   *
   * @param rows computes rows of the output
   */
  static TaskBody rows(RowBody rows) {
    Objects.requireNonNull(rows, "rows");
    return task -> {
      long first = task.firstRow();
      long end = task.endRow();
      if (first < end) {
        rows.run(task, first, end);
      }
    };
  }
}
