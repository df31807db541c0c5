package org.ggmlext.natives;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.ggmlext.probe.LoadProbe;

/** A Java process of its own that runs {@link LoadProbe}: a process loads ggml once, for good. */
final class ForkedJvm {
  private static final long TIMEOUT_S = 240;

  private final List<String> options = new ArrayList<>();
  private Path home = Path.of(System.getProperty("java.home"));
  private List<String> path = List.of("-cp", String.join(File.pathSeparator, classPath()));

  /**
   * @param status of the process: 0, or 3 where the probe reports an exception
   * @param output what it printed, its log included
   */
  record Result(int status, String output) {
    /** The value of a line {@code key=value}. */
    String value(String key) {
      return output
          .lines()
          .filter(line -> line.startsWith(key + "="))
          .map(line -> line.substring(key.length() + 1))
          .findFirst()
          .orElseThrow(() -> new AssertionError("no " + key + " in:\n" + output));
    }
  }

  ForkedJvm property(String name, Object value) {
    options.add("-D" + name + "=" + value);
    return this;
  }

  /** Everything that the tests need, the natives jars included. */
  static List<String> classPath() {
    return Stream.of(
            Path.of("target/test-classes").toAbsolutePath().toString(),
            System.getProperty("java.class.path"),
            System.getProperty("jdk.module.path", ""))
        .flatMap(path -> Stream.of(path.split(File.pathSeparator)))
        .filter(entry -> !entry.isBlank())
        .distinct()
        .toList();
  }

  /** Takes the entries whose file name has one of these parts out of the class path. */
  ForkedJvm without(String... parts) {
    path =
        List.of(
            "-cp",
            String.join(
                File.pathSeparator,
                classPath().stream()
                    .filter(entry -> Stream.of(parts).noneMatch(entry::contains))
                    .toList()));
    return this;
  }

  /**
   * Runs the library as the named module that it is; the natives jars are there, but not required.
   */
  ForkedJvm named() {
    // A folder of natives that is not packed yet is no module.
    Map<Boolean, List<String>> byKind =
        modulePath().stream()
            .collect(
                Collectors.partitioningBy(
                    entry ->
                        Files.isRegularFile(Path.of(entry))
                            || Files.exists(Path.of(entry, "module-info.class"))));
    List<String> others = new ArrayList<>(byKind.get(false));
    others.add(Path.of("target/test-classes").toAbsolutePath().toString());
    path =
        List.of(
            "-p",
            String.join(File.pathSeparator, byKind.get(true)),
            "--add-modules",
            "org.ggmlext",
            "-cp",
            String.join(File.pathSeparator, others));
    return this;
  }

  /** Runs a run-time image that has the library and the natives in it. */
  ForkedJvm image(Path image) {
    home = image;
    path =
        List.of(
            "--add-modules",
            "org.ggmlext",
            "-cp",
            Path.of("target/test-classes").toAbsolutePath().toString());
    return this;
  }

  /** Our modules, those of the natives, and what they require. */
  static List<String> modulePath() {
    return classPath().stream()
        .filter(
            entry ->
                Stream.of(
                        "ggml-ext-java/target/classes",
                        "jextract-gen/target",
                        "ggml-ext-bindings",
                        "ggml-stock",
                        "stock-ggml/target",
                        "ggml-ext-natives",
                        "native/target",
                        "slf4j",
                        "jackson-core")
                    .anyMatch(entry::contains))
        .toList();
  }

  Process start(Path output, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(home.resolve("bin/java").toString());
    command.add("--enable-native-access=ALL-UNNAMED,org.ggmlext,org.ggmlext.bindings");
    command.add("--illegal-native-access=deny");
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.add("-Dorg.slf4j.simpleLogger.defaultLogLevel=debug");
    command.addAll(options);
    command.addAll(path);
    command.add(LoadProbe.class.getName());
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeAll(List.of("GGML_HOME", "GGML_EXT_LIBRARY"));
    return builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
  }

  Result run(Path temporary, String... arguments) throws IOException, InterruptedException {
    Path output = Files.createTempFile(temporary, "probe", ".txt");
    return result(start(output, arguments), output);
  }

  static Result result(Process process, Path output) throws IOException, InterruptedException {
    if (!process.waitFor(TIMEOUT_S, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new AssertionError("no end after " + TIMEOUT_S + " s:\n" + Files.readString(output));
    }
    return new Result(process.exitValue(), Files.readString(output));
  }
}
