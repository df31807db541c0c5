package org.ggmlext.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.spi.ToolProvider;
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
    ToolProvider jlink = ToolProvider.findFirst("jlink").orElse(null);
    Assumptions.assumeTrue(jlink != null, "this Java has no jlink");
    Path image = temporary.resolve("image");
    StringWriter messages = new StringWriter();
    PrintWriter out = new PrintWriter(messages, true);
    int status =
        jlink.run(
            out,
            out,
            "--module-path",
            String.join(File.pathSeparator, ForkedJvm.modulePath()),
            "--add-modules",
            "org.ggmlext,org.ggmlext.stock,org.ggmlext.natives.linux.x86_64",
            "--output",
            image.toString());
    assertThat(status).as(messages.toString()).isZero();

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
