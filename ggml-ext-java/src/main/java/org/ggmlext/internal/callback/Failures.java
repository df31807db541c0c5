package org.ggmlext.internal.callback;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/**
 * What happens to a {@link Throwable} at the border. C gets a failed status and a message that ends
 * with a number; wherever C takes the message, the number leads back to the object.
 */
public final class Failures {
  private static final int KEPT = 256;
  private static final Pattern NUMBERED = Pattern.compile("(.*) \\[#(\\d+)]", Pattern.DOTALL);
  private static final MemorySegment EMPTY = Arena.global().allocateFrom("");
  private static final MemorySegment NO_MESSAGE =
      Arena.global().allocateFrom("a Java callback failed, and so did making its message");

  private static final Map<Long, Throwable> RECENT =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Throwable> eldest) {
          return size() > KEPT;
        }
      };

  private static long count;
  private static volatile boolean loaded;

  private Failures() {}

  /** From now on there is a library that can be asked. */
  public static void libraryLoaded() {
    loaded = true;
  }

  /** Tells C of a failure; returns the status. Throws nothing, whatever state the VM is in. */
  static int raise(Throwable failure) {
    try {
      setError(failure + " [#" + keep(failure) + "]");
    } catch (Throwable e) {
      ggml_ext_h.ggml_ext_set_error(NO_MESSAGE);
    }
    return ggml_ext_h.GGML_EXT_STATUS_FAILED();
  }

  private static long keep(Throwable failure) {
    synchronized (RECENT) {
      RECENT.put(++count, failure);
      return count;
    }
  }

  /** Leaves a message for C: why the callback that is running refuses or fails. */
  public static void setError(String message) {
    try (Arena arena = Arena.ofConfined()) {
      ggml_ext_h.ggml_ext_set_error(arena.allocateFrom(message.replace('\0', ' ')));
    }
  }

  /**
   * Why a call failed.
   *
   * @param message "" where nothing is known
   * @param cause what a Java callback threw, if that was the reason
   */
  public record Reason(String message, @Nullable Throwable cause) {}

  /** Why the call that just failed on this thread did; asking a second time gives nothing. */
  public static Reason last() {
    if (!loaded) {
      return new Reason("", null);
    }
    String message = Raw.getString(ggml_ext_h.ggml_ext_last_error().address());
    if (message.isEmpty()) {
      return new Reason("", null);
    }
    ggml_ext_h.ggml_ext_set_error(EMPTY);
    Matcher numbered = NUMBERED.matcher(message);
    if (!numbered.matches()) {
      return new Reason(message, null);
    }
    synchronized (RECENT) {
      return new Reason(numbered.group(1), RECENT.get(Long.valueOf(numbered.group(2))));
    }
  }
}
