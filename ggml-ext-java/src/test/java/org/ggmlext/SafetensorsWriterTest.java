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
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SafetensorsWriterTest {
  private static final List<String> ORDER = List.of("n", "b", "u", "q", "v", "p", "i");

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
  @DisplayName("JAVA-2: tensors of another file are written as they are there, of every type")
  void writesAgain() throws IOException {
    String tensors =
        "\"i\":{\"dtype\":\"U64\",\"shape\":[],\"data_offsets\":[0,8]},"
            + "\"p\":{\"dtype\":\"F32\",\"shape\":[1,1,2],\"data_offsets\":[8,16]},"
            + "\"v\":{\"dtype\":\"F16\",\"shape\":[1,2,1,1,1],\"data_offsets\":[16,20]},"
            + "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2,1],\"data_offsets\":[20,22]},"
            + "\"u\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[22,24]},"
            + "\"q\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,0],\"data_offsets\":[24,24]},"
            + "\"n\":{\"dtype\":\"F4\",\"shape\":[2,1],\"data_offsets\":[24,25]}";
    byte[] data = new byte[25];
    for (int i = 0; i < data.length; i++) {
      data[i] = (byte) (7 * i);
    }
    byte[] whole = SafetensorsBytes.file("{\"__metadata__\":{\"a\":\"b\"}," + tensors + "}", data);
    Path given = folder.resolve("given.safetensors");
    Files.write(given, whole);
    SafetensorsWriter writer = new SafetensorsWriter();
    try (Safetensors file = Safetensors.open(given)) {
      file.metadata().forEach(writer::metadata);
      // The smallest elements first: the writer has to put them into order.
      file.tensors().stream()
          .sorted(Comparator.comparing(tensor -> ORDER.indexOf(tensor.name())))
          .forEach(tensor -> writer.add(tensor, file.data(tensor.name())));
      writer.write(path());
      assertThat(Files.readAllBytes(path())).isEqualTo(whole);

      // The file that data come from can be the one that is written.
      writer.write(given);
      assertThat(Files.readAllBytes(given)).isEqualTo(whole);
    }
  }

  @Test
  @DisplayName("JAVA-2: a type and sizes are written as they are given")
  void writesSizes() throws IOException {
    new SafetensorsWriter()
        .add("one", "F32", List.of(), bytes(0, 0, 0x80, 0x3f))
        .add("row", "U16", List.of(1L, 1L), bytes(1, 2))
        .write(path());
    assertThat(Files.readAllBytes(path()))
        .isEqualTo(
            SafetensorsBytes.file(
                "{\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                    + "\"row\":{\"dtype\":\"U16\",\"shape\":[1,1],\"data_offsets\":[4,6]}}",
                SafetensorsBytes.bytes(0, 0, 0x80, 0x3f, 1, 2)));
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
    assertThatThrownBy(() -> writer.add("t", "F7", List.of(1L), bytes(1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"t\" is F7; a safetensors file has F64, I64, U64");
    assertThatThrownBy(() -> writer.add("t", "U8", List.of(2L, -1L), bytes(1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no negative size: [2, -1]");
    assertThatThrownBy(() -> writer.add("t", "F4", List.of(3L), bytes(1, 2)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("12 bits, no whole number of bytes");
    Path nowhere = folder.resolve("none").resolve("a.safetensors");
    assertThatThrownBy(() -> writer.write(nowhere))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot write");
  }
}
