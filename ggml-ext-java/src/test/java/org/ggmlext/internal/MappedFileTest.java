package org.ggmlext.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class MappedFileTest {
  @TempDir private Path folder;

  @Test
  @Timeout(60)
  @DisplayName("JAVA-2: a close while a read runs lets it end first")
  void closeDuringRead() throws Exception {
    Path path = Files.write(folder.resolve("file"), new byte[] {1, 2, 3});
    MappedFile file = new MappedFile(path);
    Thread closer = Thread.ofPlatform().unstarted(file::close);
    int sum =
        file.read(
            bytes -> {
              closer.start();
              while (closer.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
              }
              return bytes.get(ValueLayout.JAVA_BYTE, 0)
                  + bytes.get(ValueLayout.JAVA_BYTE, 1)
                  + bytes.get(ValueLayout.JAVA_BYTE, 2);
            });
    assertThat(sum).isEqualTo(6);
    closer.join();
    assertThatThrownBy(() -> file.read(bytes -> bytes))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(path + " is closed");
    file.close();
  }
}
