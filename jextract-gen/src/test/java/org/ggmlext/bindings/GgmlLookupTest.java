package org.ggmlext.bindings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.Optional;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class GgmlLookupTest {
  private static final MemorySegment ADDRESS = MemorySegment.ofAddress(16);

  private final GgmlLookup lookup = new GgmlLookup("ggml");

  @Test
  @DisplayName("JAVA-1: a function that the library lacks fails when it is called, by its name")
  void missingFunction() {
    Generated.provideAddresses();
    assertThat(ggml_cpu_h.ggml_cpu_has_avx2$address()).isEqualTo(ADDRESS);
    for (int attempt = 0; attempt < 2; attempt++) {
      assertThatThrownBy(ggml_cpu_h::ggml_cpu_has_avx512)
          .isInstanceOf(LinkageError.class)
          .hasMessageContaining(Generated.MISSING);
    }
    assertThat(GgmlLookup.GGML.find(Generated.MISSING)).isEmpty();
  }

  @Test
  @DisplayName("JAVA-1: without a library a look-up says so")
  void nothingLoaded() {
    assertThatThrownBy(() -> lookup.find("ggml_init"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("ggml_init is asked for, but ggml is not loaded yet");
    assertThatThrownBy(() -> lookup.findOrThrow("ggml_init"))
        .isInstanceOf(UnsatisfiedLinkError.class)
        .hasMessageContaining("ggml is not loaded yet");
  }

  @Test
  @DisplayName("JAVA-1: the library may change until a function is found in it")
  void changeOfLibrary() {
    SymbolLookup empty = name -> Optional.empty();
    SymbolLookup full = name -> Optional.of(ADDRESS);
    lookup.set(empty);
    assertThat(lookup.find("ggml_init")).isEmpty();
    lookup.set(full);
    assertThat(lookup.findOrThrow("ggml_init")).isEqualTo(ADDRESS);
    lookup.set(full);
    assertThatThrownBy(() -> lookup.set(empty))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("ggml are already in use");
    assertThat(lookup.findOrThrow("ggml_init")).isEqualTo(ADDRESS);
  }
}
