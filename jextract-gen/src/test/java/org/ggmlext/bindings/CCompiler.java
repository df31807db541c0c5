package org.ggmlext.bindings;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Asks {@code cc} about a header. */
final class CCompiler {
  private static final Pattern DIAGNOSTIC =
      Pattern.compile("^[^:]*program\\.c:(\\d+):\\d+: (?:warning|error): (.*)$", Pattern.MULTILINE);

  private final Path directory;
  private final Path includes;
  private final String prologue;

  /**
   * @param directory where programs are written and run
   * @param declarations C text that every program has after the headers
   */
  CCompiler(Header header, Path directory, String declarations) {
    this.directory = directory;
    this.includes = header.directory();
    this.prologue =
        header.files.stream()
                .map(file -> "#include \"" + file + "\"\n")
                .collect(Collectors.joining("", "#include <stdio.h>\n#include <string.h>\n", ""))
            + declarations;
  }

  /** The values of integer expressions, in their order. */
  List<Long> evaluate(List<String> expressions) throws IOException, InterruptedException {
    StringBuilder source = new StringBuilder(prologue).append("int main(void) {\n");
    for (String expression : expressions) {
      source.append("printf(\"%lld\\n\", (long long) (").append(expression).append("));\n");
    }
    Files.writeString(directory.resolve("program.c"), source.append("return 0;\n}\n"));
    String messages = run("cc", "-std=gnu11", "-w", "-I" + includes, "program.c", "-o", "program");
    assertThat(directory.resolve("program")).as(messages).exists();
    return run(directory.resolve("program").toString()).lines().map(Long::valueOf).toList();
  }

  /** What the compiler has against statements: index of the statement to its messages. */
  Map<Integer, String> diagnose(List<String> statements, String... options)
      throws IOException, InterruptedException {
    List<String> functions = new ArrayList<>();
    for (int i = 0; i < statements.size(); i++) {
      functions.add("void statement_" + i + "(void) { " + statements.get(i) + "; }\n");
    }
    Files.writeString(directory.resolve("program.c"), prologue + String.join("", functions));
    List<String> command = new ArrayList<>(List.of("cc", "-std=gnu11", "-fsyntax-only"));
    command.addAll(List.of(options));
    command.addAll(List.of("-I" + includes, "program.c"));
    String messages = run(command.toArray(String[]::new));
    int firstLine = (int) prologue.lines().count() + 1;
    Map<Integer, String> diagnostics = new TreeMap<>();
    Matcher matcher = DIAGNOSTIC.matcher(messages);
    while (matcher.find()) {
      int statement = Integer.parseInt(matcher.group(1)) - firstLine;
      diagnostics.merge(statement, matcher.group(2), (first, next) -> first + "; " + next);
    }
    return diagnostics;
  }

  private String run(String... command) throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true);
    builder.environment().put("LC_ALL", "C");
    Process process = builder.start();
    String output = new String(process.getInputStream().readAllBytes());
    process.waitFor();
    return output;
  }
}
