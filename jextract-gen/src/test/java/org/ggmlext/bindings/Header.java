package org.ggmlext.bindings;

import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/** The C headers that are bound, and which generated classes belong to them. */
enum Header {
  GGML(List.of("ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-cpu.h", "gguf.h")),
  GGML_EXT(List.of("ggml-ext.h"));

  final List<String> files;

  Header(List<String> files) {
    this.files = files;
  }

  boolean declares(Class<?> generated) {
    return this == (generated.getName().contains(".ggml_ext_") ? GGML_EXT : GGML);
  }

  /** Aborts the test where ggml's headers cannot be had; the reason is what headers.sh says. */
  Path directory() {
    Path module = Path.of("").toAbsolutePath();
    if (this == GGML_EXT) {
      return module.resolveSibling("native/include");
    }
    try {
      Process script = new ProcessBuilder("sh", "headers.sh").start();
      String directory = new String(script.getInputStream().readAllBytes()).strip();
      String reason = new String(script.getErrorStream().readAllBytes()).strip();
      if (script.waitFor() != 0) {
        abort("the headers of ggml are not to be had: " + reason);
      }
      return Path.of(directory);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  String text() {
    return files.stream()
        .map(
            file -> {
              try {
                return Files.readString(directory().resolve(file));
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            })
        .collect(Collectors.joining("\n"));
  }
}
