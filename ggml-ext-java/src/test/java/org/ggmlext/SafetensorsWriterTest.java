package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SafetensorsWriterTest {
  @TempDir private Path folder;

  private Path path() {
    return folder.resolve("model.safetensors");
  }

  private static MemorySegment bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return MemorySegment.ofArray(bytes);
  }

  @Test
  @DisplayName("JAVA-2: a file is written byte for byte as the format says, large elements first")
  void bytesOfFile() throws IOException {
    new SafetensorsWriter()
        .metadata("made \"by\"", "hand")
        .add("text", (byte) 123, (byte) 125)
        .add("matrix", Type.I8, Shape.of(3, 1), bytes(-1, 2, 3))
        .add("scale", Type.F32, Shape.of(1, 2), MemorySegment.ofArray(new float[] {1, -2}))
        .write(path());

    String header =
        "{\"__metadata__\":{\"made \\\"by\\\"\":\"hand\"},"
            + "\"scale\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
            + "\"text\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]},"
            + "\"matrix\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[10,13]}}";
    int padded = (header.length() + 7) / 8 * 8;
    ByteBuffer expected = ByteBuffer.allocate(8 + padded + 13).order(ByteOrder.LITTLE_ENDIAN);
    expected.putLong(padded).put(header.getBytes(StandardCharsets.UTF_8));
    expected.put(" ".repeat(padded - header.length()).getBytes(StandardCharsets.UTF_8));
    expected.putFloat(1).putFloat(-2).put(new byte[] {123, 125, -1, 2, 3});
    assertThat(Files.readAllBytes(path())).isEqualTo(expected.array());
  }

  @Test
  @DisplayName("JAVA-2: what is written is read again, U8 as I8 with the file's name of the type")
  void readAgain() {
    Device cpu = Ggml.load().device("CPU");
    try (Context context = Context.forTensors(2)) {
      Tensor tensor = context.newTensor(Type.F32, 3, 2);
      context.allocate(cpu);
      tensor.setFloats(1, 2, 3, 4, 5, 6);
      new SafetensorsWriter()
          .add("w", tensor)
          .add("text", "{}".getBytes(StandardCharsets.UTF_8))
          .write(path());
    }
    try (Safetensors file = Safetensors.open(path());
        Context context = Context.forTensors(2)) {
      assertThat(file.path()).isEqualTo(path());
      assertThat(file.contains("w")).isTrue();
      assertThat(file.contains("v")).isFalse();
      Tensor w = file.newTensor(context, "w");
      Tensor text = file.newTensor(context, "text");
      context.allocate(cpu);
      file.load("w", w);
      file.load("text", text);
      assertThat(w.shape()).isEqualTo(Shape.of(3, 2));
      assertThat(w.getFloats()).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(file.tensor("text").dtype()).isEqualTo("U8");
      assertThat(text.type()).isEqualTo(Type.I8);
      assertThat(text.getBytes()).containsExactly('{', '}');
    }
  }

  @Test
  @DisplayName("JAVA-2: a write that fails midway leaves the old file whole, and no temporary one")
  void failsMidway() throws IOException {
    Files.writeString(path(), "old");
    SafetensorsWriter writer = new SafetensorsWriter().add("a", new byte[3 << 20]);
    try (Arena arena = Arena.ofConfined()) {
      writer.add("b", Type.I8, Shape.of(5), arena.allocate(5));
    }
    assertThatThrownBy(() -> writer.write(path())).isInstanceOf(IllegalStateException.class);
    assertThat(path()).hasContent("old");
    assertThat(folder.toFile().list()).containsExactly("model.safetensors");
  }

  @Test
  @DisplayName("JAVA-2: a taken name, a quantised type and a wrong number of bytes are refused")
  void refuses() {
    SafetensorsWriter writer = new SafetensorsWriter().add("a", (byte) 1);
    assertThatThrownBy(() -> writer.add("a", (byte) 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("the name \"a\" is taken");
    assertThatThrownBy(() -> writer.add("__metadata__", (byte) 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is taken");
    assertThatThrownBy(() -> writer.add("q", Type.Q8_0, Shape.of(32), bytes(new int[34])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"q\" is Q8_0; a safetensors file has F64");
    assertThatThrownBy(() -> writer.add("f", Type.F32, Shape.of(3), bytes(1, 2, 3)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("\"f\" F32 [3] has 12 bytes, 3 are given");
    Path nowhere = folder.resolve("none").resolve("a.safetensors");
    assertThatThrownBy(() -> writer.write(nowhere))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot write");
  }
}
