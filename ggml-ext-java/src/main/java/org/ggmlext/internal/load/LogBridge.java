package org.ggmlext.internal.load;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_log_callback;
import org.ggmlext.internal.Native;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Hands ggml's log lines to SLF4J. ggml writes lines in pieces; a piece without a level continues.
 */
final class LogBridge {
  private static final Logger LOG = LoggerFactory.getLogger("org.ggmlext.ggml");
  private static final int CONT = 5;

  private static final ThreadLocal<Line> LINES = ThreadLocal.withInitial(Line::new);

  private LogBridge() {}

  static void connect() {
    MemorySegment stub = ggml_log_callback.allocate(LogBridge::receive, Arena.global());
    ggml_h.ggml_log_set(stub, MemorySegment.NULL);
    // After the VM has ended, native threads may still log.
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> ggml_h.ggml_log_set(MemorySegment.NULL, MemorySegment.NULL),
                "ggml-log-disconnect"));
  }

  private static void receive(int level, MemorySegment text, MemorySegment userData) {
    try {
      LINES.get().add(level, Native.string(text));
    } catch (Throwable e) {
      // Nothing may leave an upcall, and there is no caller to tell.
      System.err.println("a line of ggml's log is lost: " + e);
    }
  }

  private static final class Line {
    private final StringBuilder text = new StringBuilder();
    private Level level = Level.INFO;

    void add(int newLevel, String piece) {
      if (newLevel != CONT) {
        flush();
        level = levelOf(newLevel);
      }
      text.append(piece);
      if (piece.endsWith("\n")) {
        flush();
      }
    }

    private void flush() {
      String line = text.toString().stripTrailing();
      text.setLength(0);
      if (!line.isEmpty()) {
        LOG.atLevel(level).log(line);
      }
    }

    private static Level levelOf(int value) {
      return switch (value) {
        case 1 -> Level.DEBUG;
        case 3 -> Level.WARN;
        case 4 -> Level.ERROR;
        default -> Level.INFO;
      };
    }
  }
}
