package org.ggmlext.ext;

/** Computes a range of the output's rows. */
@FunctionalInterface
public interface RowBody {
  /**
   * Computes rows {@code first .. end - 1} of {@link Task#dst}; never called for an empty range.
   *
   * @param task views of output and sources, valid during this call only
   * @param first first row, counted over dimensions 1, 2 and 3 in this order
   * @param end one after the last row
   * @throws Exception fails the compute, and is the cause of what it throws
   */
  void run(Task task, long first, long end) throws Exception;
}
