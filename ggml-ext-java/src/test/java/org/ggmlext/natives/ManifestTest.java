package org.ggmlext.natives;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.ggmlext.GgmlException;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ManifestTest {
  private static final String HASH =
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

  @Test
  @DisplayName("JAVA-5: a manifest lists libraries, then backends, each with its hash")
  void order() {
    Manifest manifest =
        parse(
            """
            libraries=libz.so,liba.so
            backends=libm.so
            sha256.libm.so=%1$s
            sha256.liba.so=%1$s
            sha256.libz.so=%1$s
            """
                .formatted(HASH));
    assertThat(manifest.hashes()).containsOnlyKeys("libz.so", "liba.so", "libm.so");
    assertThat(manifest.hashes().keySet()).containsExactly("libz.so", "liba.so", "libm.so");
    assertThat(manifest.hashes()).containsEntry("liba.so", HASH);
  }

  @Test
  @DisplayName("JAVA-5: the digest of a manifest is the SHA-256 of its bytes")
  void digest() {
    // FIPS 180-2, appendix B.1, for the bytes "abc".
    assertThat(Sha256.of("abc".getBytes(UTF_8)))
        .isEqualTo("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    byte[] bytes = ("libraries=a\nsha256.a=" + HASH).getBytes(UTF_8);
    assertThat(Manifest.parse("here", bytes).digest()).isEqualTo(Sha256.of(bytes));
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          libraries=                            | here lists no libraries
          name=ggml                             | here lists no libraries
          libraries=../evil.so                  | here lists "../evil.so", which is no plain file name
          libraries=/etc/evil.so                | here lists "/etc/evil.so", which is no plain file name
          libraries=.hidden                     | here lists ".hidden", which is no plain file name
          libraries=liba.so                     | here has "" for sha256.liba.so, expected 64 hexadecimal digits
          backends=liba.so\\nsha256.liba.so=12  | here has "12" for sha256.liba.so
          libraries=\\\\u12                     | here is no properties file
          """)
  @DisplayName("JAVA-5: a malformed manifest is refused, and the message says where and why")
  void malformed(String text, String message) {
    assertThatThrownBy(() -> parse(text.replace("\\n", "\n").replace("\\\\", "\\")))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest(name = "{0}, {1}")
  @CsvSource({
    "Linux, amd64, linux-x86_64",
    "Linux, aarch64, linux-aarch64",
    "Mac OS X, aarch64, macos-aarch64",
    "Windows 11, amd64, windows-x86_64",
    "Linux, riscv64, linux-riscv64",
    "FreeBSD, amd64, freebsd-x86_64"
  })
  @DisplayName("JAVA-5: a platform is named alike, whatever Java calls it")
  void platform(String os, String arch, String name) {
    assertThat(Platform.of(os, arch)).hasToString(name);
  }

  private static Manifest parse(String text) {
    return Manifest.parse("here", text.getBytes(UTF_8));
  }
}
