package org.ggmlext.natives;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LibraryFormatTest {
  @ParameterizedTest(name = "{0}")
  @CsvSource({
    "Linux, libggml-ext.so, libggml.so.0",
    "FreeBSD, libggml-ext.so, libggml.so.0",
    "Mac OS X, libggml-ext.dylib, libggml.dylib",
    "Windows 11, ggml-ext.dll, ggml.dll",
    "Windows Server 2025, ggml-ext.dll, ggml.dll"
  })
  @DisplayName("JAVA-5: libraries are called what the system calls them")
  void files(String os, String file, String systemFile) {
    LibraryFormat format = LibraryFormat.of(Platform.of(os, "amd64"));
    assertThat(format.file("ggml-ext")).isEqualTo(file);
    assertThat(format.systemFile("ggml")).isEqualTo(systemFile);
  }

  @ParameterizedTest(name = "{1}")
  @CsvSource({
    "ELF, libggml-base.so, true",
    "ELF, libggml-base.so.0, true",
    "ELF, libggml-base.so.0.23.1, true",
    "ELF, libggml-base.0.so, false",
    "ELF, ggml-base.dll, false",
    "MACH_O, libggml-base.dylib, true",
    "MACH_O, libggml-base.0.23.dylib, true",
    "MACH_O, libggml-base.so, false",
    "PE, ggml-base.dll, true",
    "PE, ggml-base-dll, false",
    "PE, libggml-base.dll, false",
    "PE, ggml-base.dll.a, false"
  })
  @DisplayName("JAVA-5: a library's files are told from others by name")
  void matches(LibraryFormat format, String file, boolean matches) {
    assertThat(format.files("ggml-base").matcher(file).matches()).isEqualTo(matches);
  }
}
