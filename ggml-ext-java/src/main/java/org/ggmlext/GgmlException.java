package org.ggmlext;

import org.jspecify.annotations.Nullable;

/**
 * Something that ggml, a file or the machine refused: a library that cannot be loaded, a compute
 * that failed, a malformed model file. Mistakes in arguments are {@link IllegalArgumentException}s,
 * and uses after closing {@link IllegalStateException}s.
 *
 * <p>Where a compute failed because a callback threw, the thrown object is the {@linkplain
 * #getCause() cause}.
 */
public class GgmlException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final boolean aborted;

  /** An exception with a message that says what was tried and why it failed. */
  public GgmlException(String message) {
    this(message, null);
  }

  /** An exception with a message and what caused it. */
  public GgmlException(String message, @Nullable Throwable cause) {
    this(message, cause, false);
  }

  /**
   * An exception of a compute.
   *
   * @param aborted whether the compute was aborted, {@code GGML_STATUS_ABORTED}
   */
  public GgmlException(String message, @Nullable Throwable cause, boolean aborted) {
    super(message, cause);
    this.aborted = aborted;
  }

  /**
   * Whether a compute ended because the {@linkplain Backend#setAbort abort callback} asked for it;
   * also where that callback threw, and then what it threw is the cause.
   */
  public boolean isAborted() {
    return aborted;
  }
}
