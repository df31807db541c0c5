package org.ggmlext.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import jdk.incubator.vector.FloatVector;
import org.ggmlext.Ggml;

/** What the figures were measured on. */
final class Machine {
  private Machine() {}

  /** A Markdown list. */
  static String describe() {
    return String.format(
        Locale.ROOT,
        """
        - CPU: %s, %d cores; Java vectors of %d bits
        - OS: %s %s
        - JDK: %s %s
        - ggml: %s
        - commit: %s
        - load average before: %.2f
        """,
        cpu(),
        Runtime.getRuntime().availableProcessors(),
        FloatVector.SPECIES_PREFERRED.vectorBitSize(),
        System.getProperty("os.name"),
        System.getProperty("os.version"),
        System.getProperty("java.vendor"),
        Runtime.version(),
        Ggml.load().version(),
        commit(),
        load());
  }

  /** Processes that wanted to run during the last minute; negative where that is not known. */
  static double load() {
    return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
  }

  private static String cpu() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
      return lines
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElse(System.getProperty("os.arch"));
    } catch (IOException e) {
      return System.getProperty("os.arch");
    }
  }

  private static String commit() {
    try {
      String changes = git("status", "--porcelain").isEmpty() ? "" : " with local changes";
      return git("rev-parse", "--short", "HEAD") + changes;
    } catch (IOException e) {
      return "unknown";
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "unknown";
    }
  }

  private static String git(String... arguments) throws IOException, InterruptedException {
    List<String> command = Stream.concat(Stream.of("git"), Stream.of(arguments)).toList();
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    String output =
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    if (process.waitFor() != 0) {
      throw new IOException(command + " failed");
    }
    return output;
  }
}
