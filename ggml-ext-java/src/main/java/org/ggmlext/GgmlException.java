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

  /** An exception with a message that says what was tried and why it failed. */
  public GgmlException(String message) {
    super(message);
  }

  /** An exception with a message and what caused it. */
  public GgmlException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
