package org.ggmlext.ext;

import org.ggmlext.GgmlException;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.callback.Failures;

/** Turns a status of the C library into an exception. */
final class ExtStatus {
  private ExtStatus() {}

  /** The message that the call which just failed left; the status' name if there is none. */
  static String message(int status) {
    return message(status, Failures.last());
  }

  private static String message(int status, Failures.Reason reason) {
    return reason.message().isEmpty() ? name(status) : reason.message();
  }

  private static String name(int status) {
    return Native.string(ggml_ext_h.ggml_ext_status_name(status));
  }

  /**
   * Returns if the call succeeded.
   *
   * @throws IllegalArgumentException for a wrong value, a name that is taken or not known
   * @throws IllegalStateException for what is in use or not loaded
   * @throws GgmlException for everything else
   */
  static void check(int status) {
    if (status == ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
      return;
    }
    Failures.Reason reason = Failures.last();
    String message = message(status, reason);
    Throwable cause = reason.cause();
    if (status == ggml_ext_h.GGML_EXT_STATUS_INVALID_ARGUMENT()
        || status == ggml_ext_h.GGML_EXT_STATUS_DUPLICATE()
        || status == ggml_ext_h.GGML_EXT_STATUS_NOT_FOUND()) {
      throw new IllegalArgumentException(message, cause);
    }
    if (status == ggml_ext_h.GGML_EXT_STATUS_IN_USE()
        || status == ggml_ext_h.GGML_EXT_STATUS_NOT_LOADED()) {
      throw new IllegalStateException(message, cause);
    }
    throw new GgmlException(name(status) + ": " + message, cause);
  }
}
