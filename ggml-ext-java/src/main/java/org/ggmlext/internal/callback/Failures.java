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
 *
 * <p>A callback may fail for each node of a large graph, and C reports the first failure. So the
 * first ones of series are kept apart from the others, which do not push them out. A series are the
 * failures of one callback on one thread, until somebody asks why a call failed, a compute begins,
 * or the callback goes through a graph once more. All that is kept is bounded, asked for or not.
 */
public final class Failures {
  private static final int KEPT = 256;
  private static final Pattern NUMBERED = Pattern.compile("(.*) \\[#(\\d+)]", Pattern.DOTALL);
  private static final MemorySegment EMPTY = Arena.global().allocateFrom("");
  private static final MemorySegment NO_MESSAGE =
      Arena.global().allocateFrom("a Java callback failed, and so did making its message");

  /** The last entries that were added. */
  private static final class Last<K, V> extends LinkedHashMap<K, V> {
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
      return size() > KEPT;
    }
  }

  /**
   * Who fails.
   *
   * @param callback which one, such as {@code match}
   * @param target number of the object that has it
   */
  private record Source(long thread, String callback, long target) {}

  /** Guards everything below. */
  private static final Object LOCK = new Object();

  private static final Map<Long, Throwable> FIRST = new Last<>();
  private static final Map<Long, Throwable> OTHERS = new Last<>();

  /** Where in the graph a series is. */
  private static final Map<Source, Integer> SERIES = new Last<>();

  private static long count;
  private static volatile boolean loaded;

  private Failures() {}

  /** From now on there is a library that can be asked. */
  public static void libraryLoaded() {
    loaded = true;
  }

  /** As {@link #raise(String, long, int, Throwable)}, of a callback that goes through no graph. */
  static int raise(String callback, long target, Throwable failure) {
    return raise(callback, target, 0, failure);
  }

  /**
   * Tells C of a failure; returns the status. Throws nothing, whatever state the VM is in.
   *
   * @param callback which one failed
   * @param target number of the object that has it
   * @param node of the graph that it goes through; a lower one than before begins a series
   */
  static int raise(String callback, long target, int node, Throwable failure) {
    try {
      Source source = new Source(Thread.currentThread().threadId(), callback, target);
      setError(describe(failure) + " [#" + keep(source, node, failure) + "]");
    } catch (Throwable e) {
      ggml_ext_h.ggml_ext_set_error(NO_MESSAGE);
    }
    return ggml_ext_h.GGML_EXT_STATUS_FAILED();
  }

  /** A failure as text, by its class alone where its own text cannot be made. */
  public static String describe(Throwable failure) {
    try {
      return failure.toString();
    } catch (Throwable e) {
      return failure.getClass().getName();
    }
  }

  private static long keep(Source source, int node, Throwable failure) {
    synchronized (LOCK) {
      Integer before = SERIES.put(source, node);
      (before == null || node < before ? FIRST : OTHERS).put(++count, failure);
      return count;
    }
  }

  /** What fails from now on belongs to another compute or call than what failed before. */
  public static void beginSeries() {
    synchronized (LOCK) {
      SERIES.clear();
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
    beginSeries();
    Matcher numbered = NUMBERED.matcher(message);
    if (!numbered.matches()) {
      return new Reason(message, null);
    }
    Long number = Long.valueOf(numbered.group(2));
    synchronized (LOCK) {
      Throwable first = FIRST.get(number);
      return new Reason(numbered.group(1), first != null ? first : OTHERS.get(number));
    }
  }
}
