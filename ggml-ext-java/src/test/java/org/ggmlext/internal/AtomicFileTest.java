package org.ggmlext.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AtomicFileTest {
  @TempDir private Path folder;
  private Path file;

  @BeforeEach
  void oldFile() throws IOException {
    file = Files.writeString(folder.resolve("file"), "old");
  }

  private static void write(Path path, String text) {
    AtomicFile.write(path, out -> out.write(text.getBytes(StandardCharsets.UTF_8)));
  }

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  private Path link(String name, String target) throws IOException {
    try {
      return Files.createSymbolicLink(folder.resolve(name), Path.of(target));
    } catch (UnsupportedOperationException | IOException e) {
      assumeTrue(false, "no symbolic links here: " + e);
      throw e;
    }
  }

  @Test
  @DisplayName("JAVA-2: a file is written, new or in place of an old one, and nothing else is left")
  void writes() throws IOException {
    write(file, "new");
    write(folder.resolve("other"), "first");
    assertThat(file).hasContent("new");
    assertThat(folder.resolve("other")).hasContent("first");
    assertThat(names()).containsExactly("file", "other");
  }

  @Test
  @DisplayName("JAVA-2: what fails midway leaves the old file whole, and no temporary one")
  void failsMidway() throws IOException {
    byte[] much = new byte[3 << 20];
    assertThatThrownBy(
            () ->
                AtomicFile.write(
                    file,
                    out -> {
                      out.write(much);
                      throw new IOException("disk full");
                    }))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot write " + file)
        .hasMessageContaining("disk full");
    IllegalStateException thrown = new IllegalStateException("closed");
    assertThatThrownBy(
            () ->
                AtomicFile.write(
                    file,
                    out -> {
                      out.write(much);
                      throw thrown;
                    }))
        .isSameAs(thrown);
    assertThat(file).hasContent("old");
    assertThat(names()).containsExactly("file");
  }

  @Test
  @DisplayName("JAVA-2: symbolic links are followed and stay, those to no file as well")
  void followsLinks() throws IOException {
    Path near = link("near", "file");
    Path far = link("far", near.toString());
    Path dangling = link("dangling", "missing");
    write(far, "new");
    write(dangling, "made");
    assertThat(Files.isSymbolicLink(far)).isTrue();
    assertThat(Files.isSymbolicLink(near)).isTrue();
    assertThat(Files.isSymbolicLink(dangling)).isTrue();
    assertThat(file).hasContent("new");
    assertThat(folder.resolve("missing")).hasContent("made");
    assertThat(names()).containsExactly("dangling", "far", "file", "missing", "near");
  }

  @Test
  @DisplayName("JAVA-2: links that lead to themselves are refused")
  void refusesLoops() throws IOException {
    Path loop = link("loop", "loop");
    assertThatThrownBy(() -> write(loop, "new"))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("FileSystemLoopException");
  }

  @Test
  @DisplayName("JAVA-2: the other names of a file that is replaced keep what it was")
  void leavesHardLinks() throws IOException {
    Path other = Files.createLink(folder.resolve("other"), file);
    write(file, "new");
    assertThat(file).hasContent("new");
    assertThat(other).hasContent("old");
  }

  @Test
  @DisplayName("JAVA-2: a new file has the usual permissions, a replaced one those that it had")
  void keepsPermissions() throws IOException {
    assumeTrue(Files.getFileStore(folder).supportsFileAttributeView("posix"));
    Path usual = Files.writeString(folder.resolve("usual"), "");
    Path fresh = folder.resolve("fresh");
    write(fresh, "new");
    assertThat(Files.getPosixFilePermissions(fresh))
        .isEqualTo(Files.getPosixFilePermissions(usual));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    write(file, "new");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-rw-rw-");
  }

  @Test
  @DisplayName("JAVA-2: a file that may not be written stays")
  void refusesReadOnly() throws IOException {
    assertThat(file.toFile().setWritable(false)).isTrue();
    assumeFalse(Files.isWritable(file), "root may write everything");
    assertThatThrownBy(() -> write(file, "new"))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("AccessDenied");
    assertThat(file).hasContent("old");
  }

  @Test
  @DisplayName("JAVA-2: what is no regular file is written into; a folder is refused and stays")
  void writesIntoDevices() {
    assertThatThrownBy(() -> write(folder, "new"))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot write " + folder);
    assertThat(folder).isDirectory();
    Path nowhere = Path.of("/dev/null");
    assumeTrue(Files.exists(nowhere));
    write(nowhere, "new");
    assertThat(Files.isRegularFile(nowhere)).isFalse();
    assertThat(nowhere).exists();
  }
}
