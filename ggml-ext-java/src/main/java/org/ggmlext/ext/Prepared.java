package org.ggmlext.ext;

import org.jspecify.annotations.Nullable;

/**
 * What a kernel needs for one planned step.
 *
 * @param state the kernel's own object for this step, handed to every call, and to {@link
 *     KernelBody#destroy} at its end
 * @param workspaceBytes bytes of scratch memory; aligned to 128 bytes, contents undefined at the
 *     start of each execution, shared by all tasks of the step
 * @param phases task form: how many phases there are; all tasks of a phase end before the next
 *     begins
 * @param maxTasks task form: at most so many tasks a phase; 0: one for each of the backend's
 *     threads
 */
public record Prepared(@Nullable Object state, long workspaceBytes, int phases, int maxTasks) {
  /** No state, no scratch memory, one phase, a task for each thread. */
  public static final Prepared NOTHING = new Prepared(null, 0, 1, 0);

  public Prepared {
    if (workspaceBytes < 0) {
      throw new IllegalArgumentException("workspaceBytes is " + workspaceBytes + ", expected >= 0");
    }
    if (phases < 1) {
      throw new IllegalArgumentException("phases is " + phases + ", expected >= 1");
    }
    if (maxTasks < 0) {
      throw new IllegalArgumentException("maxTasks is " + maxTasks + ", expected >= 0");
    }
  }

  /** The same with a state. */
  public Prepared withState(Object newState) {
    return new Prepared(newState, workspaceBytes, phases, maxTasks);
  }

  /** The same with so many bytes of scratch memory. */
  public Prepared withWorkspace(long bytes) {
    return new Prepared(state, bytes, phases, maxTasks);
  }

  /** The same with so many phases. */
  public Prepared withPhases(int count) {
    return new Prepared(state, workspaceBytes, count, maxTasks);
  }

  /** The same with at most so many tasks a phase. */
  public Prepared withMaxTasks(int count) {
    return new Prepared(state, workspaceBytes, phases, count);
  }
}
