package org.ggmlext.internal.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.ggmlext.GgmlException;
import org.ggmlext.natives.LibraryFormat;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GgmlLocatorTest {
  @TempDir Path home;

  @Test
  @DisplayName("JAVA-5: a ggml for Windows is found by Windows's names, also in the folder bin")
  void windows() throws IOException {
    Path bin = Files.createDirectory(home.resolve("bin")).toRealPath();
    Files.createFile(bin.resolve("ggml-base.dll"));
    Files.createFile(bin.resolve("ggml-cpu-haswell.dll"));
    Files.createFile(bin.resolve("ggml.v0.4.0.dll"));
    assertThat(locate())
        .isEqualTo(
            new GgmlLocator.Location(
                bin.resolve("ggml-base.dll").toString(),
                bin.resolve("ggml.v0.4.0.dll").toString(),
                bin));
  }

  @Test
  @DisplayName("JAVA-5: what a ggml for Windows lacks is named as it is called there")
  void lacking() throws IOException {
    assertThatThrownBy(this::locate)
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("there is no ggml-base.dll in it");
    Files.createFile(home.resolve("ggml-base.dll"));
    assertThatThrownBy(this::locate)
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("has ggml-base.dll but no ggml.dll");
  }

  @Test
  @DisplayName("JAVA-5: a property that is set but empty is an error, for ggml and for libggml-ext")
  void emptySetting() {
    assertRefused(" ", "%s is empty: name a path, or do not set it");
  }

  @Test
  @DisplayName("JAVA-5: a property that is no path here is an error, for ggml and for libggml-ext")
  void settingIsNoPath() {
    assertRefused(
        "/h\u0000me", "%s says \"/h\u0000me\", which is no path here: Nul character not allowed");
  }

  private static void assertRefused(String value, String message) {
    for (String property : new String[] {"ggml.home", "ggml.ext.library"}) {
      String before = System.getProperty(property);
      try {
        System.setProperty(property, value);
        assertThatThrownBy(
                () -> {
                  if (property.equals("ggml.home")) {
                    GgmlLocator.locate(null);
                  } else {
                    ExtLocator.library(null);
                  }
                })
            .isInstanceOf(GgmlException.class)
            .hasMessage(message.formatted("the system property " + property));
      } finally {
        if (before == null) {
          System.clearProperty(property);
        } else {
          System.setProperty(property, before);
        }
      }
    }
  }

  private GgmlLocator.Location locate() {
    return GgmlLocator.inFolder(home, "here", LibraryFormat.PE);
  }
}
