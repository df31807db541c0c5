package org.ggmlext.natives;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The cache as Windows has it, where files have no owner and mode to ask for. */
class WindowsOwnedTest {
  private static final Map<String, String> FILES =
      Map.of("ggml-ext.dll", "the layer", "ggml-ext-cpu.dll", "its kernels");

  @TempDir Path temporary;

  @Test
  @DisplayName("JAVA-5: libraries are unpacked as siblings without POSIX's attributes")
  void unpacks() throws IOException {
    Path folder = unpack();
    assertThat(folder).isEqualTo(temporary.toRealPath().resolve("here"));
    assertIntact(folder);
    assertIntact(unpack());
    try (var left = Files.list(temporary)) {
      assertThat(left).containsExactly(temporary.resolve("here"));
    }
  }

  @Test
  @DisplayName("JAVA-5: a library that was written to is replaced there too")
  void replacesDamaged() throws IOException {
    Path library = unpack().resolve("ggml-ext.dll");
    Files.writeString(library, "the later");
    Files.setLastModifiedTime(library, FileTime.fromMillis(1_000_000_000_000L));
    assertIntact(unpack());
  }

  @Test
  @DisplayName("JAVA-5: a library that the manifest does not list is deleted there too")
  void deletesStrangers() throws IOException {
    Path stranger = Files.writeString(unpack().resolve("ggml-evil.dll"), "a stranger");
    assertIntact(unpack());
    assertThat(stranger).doesNotExist();
  }

  @Test
  @DisplayName("JAVA-5: a file that lies where the folder should be is refused there too")
  void noFolder() throws IOException {
    Files.writeString(temporary.resolve("here"), "no folder");
    assertThatThrownBy(this::unpack)
        .isInstanceOf(FileSystemException.class)
        .hasMessageContaining("is no folder");
  }

  private Path unpack() throws IOException {
    byte[] manifest = FakeJar.manifest(FILES).getBytes(UTF_8);
    try (ResourceFolder source = new Resources()) {
      return new UnpackedFolder(
              WindowsOwned.probe(temporary), "here", Manifest.parse("here", manifest), source)
          .ready();
    }
  }

  private static void assertIntact(Path folder) {
    FILES.forEach((name, content) -> assertThat(folder.resolve(name)).hasContent(content));
  }

  private static final class Resources implements ResourceFolder {
    @Override
    public InputStream open(String name) {
      return new ByteArrayInputStream(FILES.getOrDefault(name, "").getBytes(UTF_8));
    }

    @Override
    public void close() {}
  }
}
