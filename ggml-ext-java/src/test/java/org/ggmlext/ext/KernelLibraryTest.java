package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.internal.load.ExtLocator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelLibraryTest {
  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  @Test
  @DisplayName("JAVA-5: a bundled library's kernels run beside a Java kernel in one graph")
  void mixed() {
    LibraryRegistration library = bench.ext.register(bench.cpu, KernelLibrary.bundled("cpu"));
    bench.atEnd(library::close);
    assertThat(library.registrations()).isNotEmpty();
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr"), "SQR")
            .rows(
                (task, first, end) -> {
                  for (long row = first; row < end; row++) {
                    for (long i = 0; i < task.dst().ne(0); i++) {
                      float v = task.src(0).getFloat(i, row, 0, 0);
                      task.dst().setFloat(i, row, 0, 0, v * v);
                    }
                  }
                }));
    int k = 256;
    int n = 64;
    int m = 48;
    float[] w = Workbench.values(k * n);
    float[] x = Workbench.values(k * m);
    Tensor product =
        bench.nodes.mulMat(bench.input(w, k, n), bench.nodes.sqr(bench.input(x, k, m)));
    float[] out = bench.compute(product);
    for (int row = 0; row < m; row++) {
      for (int column = 0; column < n; column++) {
        double sum = 0;
        for (int i = 0; i < k; i++) {
          double v = x[row * k + i];
          sum += w[column * k + i] * v * v;
        }
        assertThat((double) out[row * n + column]).isCloseTo(sum, within(1e-3));
      }
    }
  }

  @Test
  @DisplayName("JAVA-5: registering a library twice is refused with a message, and the first stays")
  void twice() {
    KernelLibrary cpu = KernelLibrary.bundled("cpu");
    LibraryRegistration first = bench.ext.register(bench.cpu, cpu);
    bench.atEnd(first::close);
    assertThatThrownBy(() -> bench.ext.register(bench.cpu, cpu))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(bench.cpu.name());
    assertThat(first.registrations()).allMatch(Registration::isOpen);
    first.close();
    first.close();
    LibraryRegistration again = bench.ext.register(bench.cpu, cpu);
    again.close();
    assertThat(again.registrations()).noneMatch(Registration::isOpen);
  }

  @Test
  @DisplayName(
      "JAVA-5: a missing file, a file that is no library and another library are told apart")
  void notALibrary(@TempDir Path folder) throws IOException {
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
    assertThatThrownBy(() -> KernelLibrary.bundled("nonesuch"))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("nonesuch");
  }
}
