package org.ggmlext.natives;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.ggmlext.natives.ForkedJvm.Result;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Loads ggml in processes of their own, from the natives jar and from folders right and wrong. */
class NativesLoadingTest {
  @TempDir Path temporary;

  @ParameterizedTest(name = "named modules: {0}")
  @ValueSource(booleans = {false, true})
  @DisplayName("JAVA-5: ggml is loaded from the natives jar, on the class path and the module path")
  void fromJar(boolean named) throws Exception {
    Result result = (named ? fork().named() : fork()).run(temporary, "load");
    assertThat(result.status()).as(result.output()).isZero();
    assertThat(result.value("named")).isEqualTo(String.valueOf(named));
    assertThat(result.value("devices")).isEqualTo("[CPU]");
    assertThat(result.value("base"))
        .startsWith(cache().toRealPath() + "/linux-x86_64-")
        .endsWith("/libggml-base.so");
  }

  @ParameterizedTest(name = "named modules: {0}")
  @ValueSource(booleans = {false, true})
  @DisplayName("JAVA-5: libggml-ext comes from its natives jar as well")
  void layerFromJar(boolean named) throws Exception {
    Result result = (named ? fork().named() : fork()).run(temporary, "attach");
    assertThat(result.status()).as(result.output()).isZero();
    assertThat(result.value("abi")).isNotEmpty();
    try (Stream<Path> folders = Files.list(cache())) {
      assertThat(folders).hasSize(2);
    }
  }

  @Test
  @DisplayName("JAVA-5: without any ggml the message says where it was sought")
  void noGgml() throws Exception {
    Result result = fork().without("ggml-stock", "stock-ggml").run(temporary, "load");
    if (result.status() == 0) {
      assertThat(result.value("base")).as("the system's own ggml").isEqualTo("libggml-base.so.0");
      return;
    }
    assertThat(result.value("exception")).isEqualTo("org.ggmlext.GgmlException");
    assertThat(result.value("message"))
        .contains("ggml.home", "GGML_HOME", "META-INF/native/linux-x86_64/ggml/manifest.properties")
        .contains("libggml-base.so.0: cannot open shared object file");
  }

  @Test
  @DisplayName("issue list: a machine that no natives jar serves is told what was sought")
  void unknownPlatform() throws Exception {
    Result result = fork().property("os.name", "FreeBSD").run(temporary, "load");
    assertThat(result.value("message"))
        .contains("META-INF/native/freebsd-x86_64/ggml/manifest.properties");
  }

  @Test
  @DisplayName("issue list: a wrong ggml.home is named")
  void wrongHome() throws Exception {
    Path missing = temporary.resolve("missing");
    assertThat(loadFrom(missing)).contains(missing + ", from the system property ggml.home, is no");
    Path empty = Files.createDirectory(temporary.resolve("empty"));
    assertThat(loadFrom(empty)).contains(empty + ", from", "there is no libggml-base.so in it");
  }

  @Test
  @DisplayName("issue list: a file that is no library is refused in the loader's words")
  void noLibrary() throws Exception {
    Path home = copyOfGgml("home");
    Path base = home.resolve("libggml-base.so");
    Files.writeString(base, "This is no library, however long the text in it may be. ".repeat(9));
    assertThat(loadFrom(home)).contains("cannot load " + base, "invalid ELF header");
    Files.writeString(base, "short");
    assertThat(loadFrom(home)).contains("cannot load " + base, "file too short");
  }

  @Test
  @DisplayName("issue list: a library for other machines is refused in the loader's words")
  void wrongElfClass() throws Exception {
    Path home = copyOfGgml("home");
    Path base = home.resolve("libggml-base.so");
    byte[] bytes = Files.readAllBytes(base);
    bytes[4] = 1; // e_ident[EI_CLASS] = ELFCLASS32
    Files.write(base, bytes);
    assertThat(loadFrom(home)).contains("cannot load " + base, "wrong ELF class: ELFCLASS32");
  }

  @Test
  @DisplayName("issue list: a second copy of ggml-base, loaded by somebody else, is refused")
  void secondCopyOfOthers() throws Exception {
    Path foreign = copyOfGgml("foreign").resolve("libggml-base.so");
    Path home = copyOfGgml("home");
    Result result = fork().property("ggml.home", home).run(temporary, "open", foreign.toString());
    assertThat(result.value("exception")).isEqualTo("org.ggmlext.GgmlException");
    assertThat(result.value("message"))
        .contains("has loaded " + foreign + " already")
        .contains("a second copy of ggml, " + home.resolve("libggml-base.so"));
  }

  @Test
  @DisplayName("issue list: CUDA natives on a host without a GPU leave the CPU device to work with")
  void cudaWithoutDriver() throws Exception {
    Path home = copyOfGgml("home");
    Path source =
        Files.writeString(
            temporary.resolve("cuda.c"),
            "int cuInit(int flags);\n"
                + "int ggml_backend_score(void) { return 1; }\n"
                + "void *ggml_backend_init(void) { return cuInit(0) ? (void *) 0 : (void *) 1;"
                + " }\n");
    Path driverSource =
        Files.writeString(
            temporary.resolve("driver.c"), "int cuInit(int flags) { return flags; }\n");
    Path driver = temporary.resolve("libcuda-of-no-host.so.1");
    compile(driverSource, driver);
    compile(source, home.resolve("libggml-cuda.so"), driver.toString());
    Files.delete(driver); // as on a host without the driver

    Result result = fork().property("ggml.home", home).run(temporary, "attach");
    assertThat(result.status()).as(result.output()).isZero();
    assertThat(result.value("devices")).isEqualTo("[CPU]");
  }

  @Test
  @DisplayName("issue list: six processes may unpack at once")
  void sixProcesses() throws Exception {
    List<Process> processes = new ArrayList<>();
    List<Path> outputs = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      outputs.add(temporary.resolve("process" + i));
      processes.add(fork().start(outputs.get(i), "load"));
    }
    List<String> bases = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      Result result = ForkedJvm.result(processes.get(i), outputs.get(i));
      assertThat(result.status()).as(result.output()).isZero();
      assertThat(result.value("devices")).isEqualTo("[CPU]");
      bases.add(result.value("base"));
    }
    assertThat(bases).containsOnly(bases.getFirst());
    try (Stream<Path> files = Files.list(cache())) {
      assertThat(files)
          .containsExactly(cache().resolve(Path.of(bases.getFirst()).getParent().getFileName()));
    }
  }

  @Test
  @DisplayName("issue list: two class loaders of one process use the same ggml and the same layer")
  void twoClassLoaders() throws Exception {
    Result result = fork().run(temporary, "loaders");
    assertThat(result.status()).as(result.output()).isZero();
    assertThat(result.value("first")).endsWith("/libggml-base.so [CPU]");
    assertThat(result.value("second")).isEqualTo(result.value("first"));
  }

  private static void compile(Path source, Path library, String... others) throws Exception {
    List<String> command = new ArrayList<>(List.of("cc", "-shared", "-fPIC", "-o"));
    command.add(library.toString());
    command.add(source.toString());
    command.addAll(List.of(others));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
  }

  private Path cache() {
    return temporary.resolve("cache");
  }

  private ForkedJvm fork() {
    return new ForkedJvm().property("ggml.ext.cache", cache());
  }

  /** The message of what goes wrong with this folder. */
  private String loadFrom(Path home) throws IOException, InterruptedException {
    Result result = fork().property("ggml.home", home).run(temporary, "load");
    assertThat(result.value("exception"))
        .as(result.output())
        .isEqualTo("org.ggmlext.GgmlException");
    return result.value("message");
  }

  /** ggml's own libraries in a folder that a test may spoil. */
  private Path copyOfGgml(String name) throws IOException {
    Path home = Files.createDirectory(temporary.toRealPath().resolve(name));
    Path folder = NativeBundle.GGML.folder().orElseThrow();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".so"))::iterator) {
        Files.copy(file, home.resolve(String.valueOf(file.getFileName())));
      }
    }
    return home;
  }
}
