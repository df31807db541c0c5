package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A process can load only one ggml: what goes wrong goes wrong in a process of its own. */
class LoadingTest {
  @TempDir private Path folder;

  /** Loads ggml from the folders given, one after the other, and prints what happens. */
  static final class Probe {
    private Probe() {}

    public static void main(String[] folders) {
      for (String folder : folders) {
        try {
          Ggml ggml = Ggml.load(GgmlOptions.at(Path.of(folder)));
          System.out.println("loaded " + ggml.devices());
        } catch (GgmlException | IllegalStateException e) {
          System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
      }
    }
  }

  private static Path home() {
    return Path.of(Ggml.load().baseLibrary()).getParent();
  }

  private String probe(Path... folders) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    String modules = System.getProperty("jdk.module.path");
    command.add("--class-path");
    command.add(
        System.getProperty("java.class.path")
            + (modules == null ? "" : System.getProperty("path.separator") + modules)
            + System.getProperty("path.separator")
            + Path.of(
                LoadingTest.class.getProtectionDomain().getCodeSource().getLocation().getPath()));
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add(Probe.class.getName());
    for (Path path : folders) {
      command.add(path.toString());
    }
    Path out = folder.resolve("out.txt");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    String text = Files.readString(out);
    assertThat(process.exitValue()).as(text).isZero();
    return text;
  }

  @Test
  @DisplayName("JAVA-2: a folder that is not there, or has no ggml, is named")
  void wrongHome() throws Exception {
    Path empty = Files.createDirectory(folder.resolve("empty"));
    String text = probe(folder.resolve("nowhere"), empty, home());
    assertThat(text)
        .contains("GgmlException")
        .contains("nowhere, from the given folder, is no folder")
        .contains("empty, from the given folder, holds no ggml")
        .contains("loaded [CPU");
  }

  @Test
  @DisplayName("JAVA-2: a file that is no library is refused in the loader's words")
  void noLibrary() throws Exception {
    Path fake = Files.createDirectory(folder.resolve("fake"));
    Files.writeString(fake.resolve("libggml-base.so"), "no library");
    Files.writeString(fake.resolve("libggml.so"), "no library");
    assertThat(probe(fake))
        .contains("GgmlException: cannot load")
        .contains("libggml-base.so")
        .containsAnyOf("too short", "invalid ELF header");
  }

  @Test
  @DisplayName("JAVA-2: a library that is no ggml is refused, and the right one still loads")
  void anotherLibrary() throws Exception {
    Path other = Files.createDirectory(folder.resolve("other"));
    Path library = Path.of(System.getProperty("java.home"), "lib", "libnet.so");
    Files.copy(library, other.resolve("libggml-base.so"));
    Files.copy(library, other.resolve("libggml.so"));
    assertThat(probe(other)).contains("no function ggml_init");
  }

  @Test
  @DisplayName("JAVA-2: base library without the registry is refused")
  void halfAGgml() throws Exception {
    Path half = Files.createDirectory(folder.resolve("half"));
    Files.copy(Path.of(Ggml.load().baseLibrary()), half.resolve("libggml-base.so"));
    assertThat(probe(half)).contains("but no libggml.so");
  }

  @Test
  @DisplayName("JAVA-2: a ggml without any backend is refused")
  void noBackend() throws Exception {
    Path bare = Files.createDirectory(folder.resolve("bare"));
    Path registry = Path.of(Ggml.load().registryLibrary());
    Path base = Path.of(Ggml.load().baseLibrary());
    Files.copy(base, bare.resolve(base.getFileName()));
    Files.copy(registry, bare.resolve(registry.getFileName()));
    assertThat(probe(bare)).contains("brings no backend");
  }

  @Test
  @DisplayName("JAVA-2: the same place gives the same ggml, a second copy is refused")
  void secondCopy() throws Exception {
    Ggml ggml = Ggml.load();
    assertThat(Ggml.load()).isSameAs(ggml);
    assertThat(Ggml.load(GgmlOptions.at(home()))).isSameAs(ggml);
    assertThat(Ggml.get()).isSameAs(ggml);
    Path copy = Files.createDirectory(folder.resolve("copy"));
    for (String library : List.of(ggml.baseLibrary(), ggml.registryLibrary())) {
      Files.copy(Path.of(library), copy.resolve(Path.of(library).getFileName()));
    }
    assertThatThrownBy(() -> Ggml.load(GgmlOptions.at(copy)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("copy");
    assertThat(probe(home(), copy)).contains("IllegalStateException");
  }

  @Test
  @DisplayName("JAVA-2: a file that is no backend is refused")
  void noBackendFile() throws Exception {
    Path file = Files.writeString(folder.resolve("libggml-nothing.so"), "no library");
    assertThatThrownBy(() -> Ggml.load().loadBackend(file.toString()))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("libggml-nothing.so");
    assertThatThrownBy(() -> Ggml.load().loadBackend(folder.resolve("gone").toString()))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("no file");
  }

  @Test
  @DisplayName("JAVA-2: ggml says its version")
  void version() {
    assertThat(Ggml.load().version()).matches("\\d+\\.\\d+\\.\\d+.*");
    assertThat(Ggml.load()).asString().startsWith("ggml ");
  }
}
