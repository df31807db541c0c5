package org.ggmlext.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.ggmlext.Ggml;

/** The costs of planning, measured by the native program {@code plan-bench}. */
final class PlanBench {
  /** System property: the program's file. */
  static final String PROPERTY = "benchmarks.plan";

  private PlanBench() {}

  /** The program's Markdown table, or a line that says why there is none. */
  static String run(Ggml ggml) throws IOException, InterruptedException {
    String program = System.getProperty(PROPERTY);
    if (program == null || !Files.isExecutable(Path.of(program))) {
      return "(plan-bench was not built: the property %s is %s)\n".formatted(PROPERTY, program);
    }
    ProcessBuilder builder = new ProcessBuilder(program);
    Path folder = Objects.requireNonNull(Path.of(ggml.baseLibrary()).toAbsolutePath().getParent());
    builder.environment().put("GGML_EXT_TEST_GGML_DIR", folder.toString());
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    Process process = builder.start();
    String table = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    int status = process.waitFor();
    return status == 0 ? table : "(%s ended with status %d)\n".formatted(program, status);
  }
}
