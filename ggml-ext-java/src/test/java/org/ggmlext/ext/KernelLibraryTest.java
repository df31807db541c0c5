package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.ggmlext.Backend;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.internal.load.ExtLocator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Kernel libraries, compiled from src/test/c by the machine's C compiler. */
class KernelLibraryTest {
  private final Workbench bench = new Workbench();

  @TempDir Path folder;

  @AfterEach
  void close() {
    bench.close();
  }

  private Path compile(String... options) throws IOException, InterruptedException {
    Path library = folder.resolve("libtest-kernels.so");
    List<String> command =
        new ArrayList<>(List.of("cc", "-std=c11", "-Wall", "-Wextra", "-Werror"));
    command.addAll(List.of(options));
    command.addAll(
        List.of("-shared", "-fPIC", "-fvisibility=hidden", "-I", "../native/include", "-o"));
    command.addAll(List.of(library.toString(), "src/test/c/test_kernels.c"));
    command.add(ExtLocator.library(null).toString());
    Process compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(compiler.waitFor()).as(output).isZero();
    return library;
  }

  private KernelLibrary library() throws IOException, InterruptedException {
    return KernelLibrary.load(compile());
  }

  private LibraryRegistration register(KernelLibrary library) {
    LibraryRegistration registration = bench.ext.register(bench.cpu, library);
    bench.atEnd(registration::close);
    return registration;
  }

  @Test
  @DisplayName("JAVA-5: a library's kernels run beside a Java kernel in one graph")
  void mixed() throws Exception {
    LibraryRegistration library = register(library());
    assertThat(library.registrations()).hasSize(2);
    bench.register(
        Kernel.builder(Workbench.unique("test.sqrt"), "SQRT")
            .rows(
                (task, first, end) -> {
                  for (long row = first; row < end; row++) {
                    for (long i = 0; i < task.dst().ne(0); i++) {
                      task.dst().setFloat(i, row, 0, 0, 2 * task.src(0).getFloat(i, row, 0, 0));
                    }
                  }
                }));
    Tensor x = bench.input(new float[] {1, 2, 3}, 3);
    assertThat(bench.compute(bench.nodes.sqrt(bench.nodes.sqr(x))))
        .containsExactly(2002, 2008, 2018);
    assertThat(library.registrations().getFirst().stats().executed()).isEqualTo(1);
  }

  @Test
  @DisplayName("JAVA-4: an error from a native kernel carries its message")
  void nativeError() throws Exception {
    register(library());
    Tensor x = bench.input(new float[] {1, 2, 3}, 3);
    assertThatThrownBy(() -> bench.compute(bench.nodes.sin(x)))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("test.c.sin")
        .hasMessageContaining("the C kernel has no mood for this");
    assertThat(bench.compute(bench.nodes.sqr(x))).containsExactly(1001, 1004, 1009);
  }

  @Test
  @DisplayName("JAVA-5: a library that refuses to register says why")
  void refuses() throws Exception {
    KernelLibrary library = KernelLibrary.load(compile("-DTEST_KERNELS_FAIL"));
    assertThatThrownBy(() -> bench.ext.register(bench.cpu, library))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("libtest-kernels.so")
        .hasMessageContaining("this library wants another processor");
  }

  @Test
  @DisplayName("JAVA-5: registering a library twice is refused with a message, and the first stays")
  void twice() throws Exception {
    KernelLibrary library = library();
    LibraryRegistration first = register(library);
    assertThatThrownBy(() -> bench.ext.register(bench.cpu, library))
        .isInstanceOf(GgmlException.class)
        .hasMessageStartingWith(folder.toString())
        .hasMessageEndingWith(
            "libtest-kernels.so is registered on CPU already (kernel test.c.sqr)");
    assertThat(first.registrations()).allMatch(Registration::isOpen);
    first.close();
    first.close();
    assertThat(first.registrations()).noneMatch(Registration::isOpen);
    try (Registration _ =
        bench.ext.register(bench.cpu, Kernel.builder("test.c.sqr", "SQR").run(task -> {}))) {
      assertThatThrownBy(() -> bench.ext.register(bench.cpu, library))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(
              "registers nothing on CPU: kernel test.c.sqr is registered already");
    }
    register(library);
  }

  @Test
  @DisplayName("JAVA-5: a library with a kernel in use stays as a whole, and goes as a whole later")
  void closeInUse() throws Exception {
    KernelLibrary library = library();
    LibraryRegistration registration = bench.ext.register(bench.cpu, library);
    bench.atEnd(registration::close);
    Tensor x = bench.input(new float[] {1, 2, 3}, 3);
    try (Backend backend = bench.cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      Tensor y = bench.nodes.sqr(x);
      Graph graph = bench.graph(y);
      scheduler.compute(graph);
      // test.c.sin was registered after test.c.sqr, which is in use.
      assertThatThrownBy(registration::close)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("test.c.sqr");
      assertThat(registration.registrations()).allMatch(Registration::isOpen);
      assertThat(registration.registrations().getLast().stats().executed()).isZero();
      scheduler.compute(graph);
      assertThat(y.getFloats()).containsExactly(1001, 1004, 1009);
      assertThatThrownBy(() -> bench.compute(bench.nodes.sin(x)))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("test.c.sin");
    }
    bench.scheduler.close();
    bench.backend.close();
    registration.close();
    assertThat(registration.registrations()).noneMatch(Registration::isOpen);
    try (LibraryRegistration again = bench.ext.register(bench.cpu, library)) {
      assertThat(again.registrations()).hasSize(2);
      again.registrations().getLast().close();
    }
  }

  @Test
  @DisplayName(
      "JAVA-5: a missing file, a file that is no library and another library are told apart")
  void notALibrary() throws IOException {
    Path missing = folder.resolve("missing.so");
    assertThatThrownBy(() -> KernelLibrary.load(missing))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("missing.so");
    Path text = Files.write(folder.resolve("text.so"), List.of("no library"));
    assertThatThrownBy(() -> KernelLibrary.load(text))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("text.so");
    Path layer = ExtLocator.library(null);
    assertThatThrownBy(() -> KernelLibrary.load(layer))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("ggml_ext_kernel_library_init");
    for (String name : List.of("cpux", "../cpu", "")) {
      assertThatThrownBy(() -> KernelLibrary.bundled(name))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "there is no bundled kernel library \"%s\": expected \"cpu\" or \"cuda\""
                  .formatted(name));
    }
  }

  @Test
  @DisplayName(
      "JAVA-5: a library with a function that nobody has is refused, and the process lives")
  void unbound() throws IOException, InterruptedException {
    Path library = folder.resolve("libunbound.so");
    Process compiler =
        new ProcessBuilder(
                List.of(
                    "cc",
                    "-shared",
                    "-fPIC",
                    "-I",
                    "../native/include",
                    "-o",
                    library.toString(),
                    "src/test/c/test_kernels.c"))
            .inheritIO()
            .start();
    assertThat(compiler.waitFor()).isZero();
    assertThatThrownBy(() -> KernelLibrary.load(library))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("undefined symbol: ggml_ext_");
  }
}
