package org.ggmlext.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.ggmlext.natives.ForkedJvm.Result;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RuntimeImageTest {
  @TempDir Path temporary;

  @Test
  @DisplayName(
      "JAVA-5: a run-time image brings its libraries along, though no module requires them")
  void image() throws Exception {
    // In a process of its own: jlink refuses a virtual machine whose modules are patched for tests.
    Path jlink = Path.of(System.getProperty("java.home"), "bin", "jlink");
    Assumptions.assumeTrue(Files.isExecutable(jlink), "this Java has no jlink");
    Path image = temporary.resolve("image");
    Path messages = temporary.resolve("messages");
    Process process =
        new ProcessBuilder(
                jlink.toString(),
                "--module-path",
                String.join(File.pathSeparator, ForkedJvm.modulePath()),
                "--add-modules",
                "org.ggmlext,org.ggmlext.stock,org.ggmlext.natives.linux.x86_64",
                "--output",
                image.toString())
            .redirectErrorStream(true)
            .redirectOutput(messages.toFile())
            .start();
    Result linked = ForkedJvm.result(process, messages);
    assertThat(linked.status()).as(linked.output()).isZero();

    Path cache = temporary.resolve("cache");
    Result result =
        new ForkedJvm().image(image).property("ggml.ext.cache", cache).run(temporary, "attach");
    assertThat(result.status()).as(result.output()).isZero();
    assertThat(result.value("named")).isEqualTo("true");
    try (Stream<Path> folders = Files.list(cache)) {
      assertThat(folders).hasSize(2);
    }
  }
}
