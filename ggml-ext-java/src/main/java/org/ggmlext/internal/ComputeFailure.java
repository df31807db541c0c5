package org.ggmlext.internal;

import org.ggmlext.GgmlException;
import org.ggmlext.internal.callback.Failures;
import org.jspecify.annotations.Nullable;

/** The one place that turns the status of a compute into an exception. */
public final class ComputeFailure {
  private static final int SUCCESS = 0;
  private static final int ABORTED = 1;

  private ComputeFailure() {}

  /**
   * Returns if a compute succeeded.
   *
   * @param status ggml's {@code enum ggml_status}
   * @param what what was computed, to begin the message with
   * @throws GgmlException if the status is not success
   */
  public static void check(int status, String what) {
    check(status, what, null);
  }

  /**
   * As {@link #check(int, String)}, with what a callback of this compute threw.
   *
   * @throws GgmlException if the status is not success; {@code thrown} is its cause
   */
  public static void check(int status, String what, @Nullable Throwable thrown) {
    if (status == SUCCESS) {
      return;
    }
    String reason =
        switch (status) {
          case -2 -> "memory could not be allocated (GGML_STATUS_ALLOC_FAILED)";
          case -1 -> "a backend failed (GGML_STATUS_FAILED)";
          case ABORTED -> "it was aborted (GGML_STATUS_ABORTED)";
          default -> "unknown status " + status;
        };
    Failures.Reason extension = Failures.last();
    if (thrown != null) {
      reason += ": " + Failures.describe(thrown);
    } else if (!extension.message().isEmpty()) {
      reason += ": " + extension.message();
    }
    throw new GgmlException(
        what + " failed: " + reason,
        thrown != null ? thrown : extension.cause(),
        status == ABORTED);
  }
}
