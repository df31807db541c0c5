package org.ggmlext.examples.minilm;

import java.io.PrintStream;

/**
 * One line that says what is being done; on a terminal it is written over and at last wiped out.
 */
final class Progress {
  private final PrintStream out;
  private final boolean terminal = System.console() != null && System.console().isTerminal();
  private final long start = System.nanoTime();
  private int shown;

  Progress(PrintStream out) {
    this.out = out;
  }

  void show(String what) {
    String line = "%4.1f s  %s ...".formatted((System.nanoTime() - start) / 1e9, what);
    if (terminal) {
      clear();
      out.print(line);
      out.flush();
      shown = line.length();
    } else {
      out.println(line);
    }
  }

  void clear() {
    if (shown > 0) {
      out.print("\r" + " ".repeat(shown) + "\r");
      out.flush();
      shown = 0;
    }
  }
}
