package org.ggmlext.ext;

import org.jspecify.annotations.Nullable;

/** One thread's share of a step in task form; valid during the call that got it only. */
public final class Task extends Step {
  private final int ith;
  private final long rows; // of the output
  private int nth;
  private int phase;
  private @Nullable Thread thread;

  Task(PlannedStep planned, int ith) {
    super(planned);
    this.ith = ith;
    this.rows = planned.lastNode().dst().rows();
  }

  /** Takes the values of this call; says whether another thread had this share the last time. */
  boolean begin(int newPhase, int newNth) {
    phase = newPhase;
    nth = newNth;
    Thread current = Thread.currentThread();
    if (current.equals(thread)) {
      return false;
    }
    thread = current;
    return true;
  }

  /** Number of this task, {@code 0 .. nth() - 1}. */
  public int ith() {
    return ith;
  }

  /** How many tasks run at once. */
  public int nth() {
    return nth;
  }

  /** The phase, {@code 0 .. Prepared.phases - 1}; a barrier separates phases. */
  public int phase() {
    return phase;
  }

  /** First row of the output in this task's equal share. */
  public long firstRow() {
    return first(rows);
  }

  /** One after the last row of the output in this task's equal share. */
  public long endRow() {
    return end(rows);
  }

  /** First of {@code count} things in this task's equal share of them. */
  public long first(long count) {
    return ith == 0 ? 0 : count * ith / nth;
  }

  /** One after the last of {@code count} things in this task's equal share of them. */
  public long end(long count) {
    return ith + 1 == nth ? count : count * (ith + 1) / nth;
  }
}
