package org.ggmlext.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.ggmlext.internal.load.ExtLocator;

/** The compiler line that docs/writing-a-kernel.md gives, with warnings as errors. */
final class CCompiler {
  private CCompiler() {}

  static Path sharedLibrary(Path source, Path library) throws Exception {
    Process process =
        new ProcessBuilder(
                "cc",
                "-std=c11",
                "-O2",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-I../native/include",
                source.toString(),
                "-o",
                library.toString(),
                ExtLocator.library(null).toString(),
                "-lm",
                "-Wl,-z,defs")
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return library;
  }
}
