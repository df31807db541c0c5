package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.Pipe;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SafetensorsTest {
  private static final String GOOD =
      """
      {"__metadata__": {"format": "pt"},
       "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
       "i": {"dtype": "I64", "shape": [], "data_offsets": [24, 32]}}\
      """;

  @TempDir private Path folder;

  private Path write(String header, int dataBytes) throws IOException {
    byte[] text = header.getBytes(StandardCharsets.UTF_8);
    ByteBuffer file =
        ByteBuffer.allocate(8 + text.length + dataBytes).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(text.length).put(text);
    for (int i = 0; i < 6 && dataBytes >= 24; i++) {
      file.putFloat(i + 1);
    }
    Path path = folder.resolve("model.safetensors");
    Files.write(path, file.array());
    return path;
  }

  @Test
  @DisplayName("JAVA-2: a safetensors file's tensors are read, shapes in ggml's order")
  void read() throws IOException {
    Device cpu = Ggml.load().device("CPU");
    try (Safetensors file = Safetensors.open(write(GOOD, 32));
        Context context = Context.forTensors(2)) {
      assertThat(file.metadata()).containsEntry("format", "pt");
      assertThat(file.tensors()).extracting(StoredTensor::name).containsExactly("w", "i");
      assertThat(file.tensor("w").shape()).isEqualTo(Shape.of(3, 2));
      assertThat(file.tensor("i").shape()).isEqualTo(Shape.of(1));
      Tensor w = file.newTensor(context, "w");
      Tensor other = context.newTensor(Type.F16, 3, 2);
      context.allocate(cpu);
      file.load("w", w);
      assertThat(w.getFloats()).containsExactly(1, 2, 3, 4, 5, 6);
      assertThatThrownBy(() -> file.load("w", other)).isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> file.tensor("x")).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: another file than safetensors is named so, with what it begins with")
  void noSafetensors() throws IOException {
    Path file = Files.writeString(folder.resolve("model.gguf"), "GGUF\3\0\0\0and so on");
    assertThatThrownBy(() -> Safetensors.open(file))
        .isInstanceOf(GgmlException.class)
        .hasMessage(
            file
                + ": this is no safetensors file: it begins with 47 47 55 46 03 00 00 00"
                + " (\"GGUF....\"), and not with the length of a header, 2 to 100000000");
  }

  @ParameterizedTest(name = "{0} {1}")
  @CsvSource({
    "F64, '1', 8, F64, 1",
    "I64, '', 8, I64, 1",
    "U64, '1,1', 8, I64, 1",
    "C64, '2', 16, I64, 2",
    "F32, '1,2,1', 8, F32, '1,2'",
    "I32, '2', 8, I32, 2",
    "U32, '2,1', 8, I32, '1,2'",
    "F16, '1,1,1,1,3,2', 12, F16, '2,3'",
    "BF16, '2,3,1,1,2', 24, BF16, '2,1,1,6'",
    "I16, '3', 6, I16, 3",
    "U16, '3', 6, I16, 3",
    "I8, '1,2,3', 6, I8, '3,2'",
    "U8, '2,3', 6, I8, '3,2'",
    "BOOL, '0,2', 0, I8, '2,0'",
    "F8_E4M3, '2,2', 4, I8, '2,2'",
    "F8_E5M2, '2', 2, I8, 2",
    "F8_E8M0, '2', 2, I8, 2",
    "F8_E4M3FNUZ, '2', 2, I8, 2",
    "F8_E5M2FNUZ, '2', 2, I8, 2",
    "F6_E2M3, '2,4', 6, I8, 6",
    "F6_E3M2, '4', 3, I8, 3",
    "F4, '3,2', 3, I8, 3",
  })
  @DisplayName("JAVA-2: every type of the format is read, with the sizes as they are written")
  void everyType(String dtype, String sizes, int bytes, Type type, String shape)
      throws IOException {
    String header =
        "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d]}}"
            .formatted(dtype, sizes, bytes);
    byte[] data = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      data[i] = (byte) (i + 1);
    }
    Path path = folder.resolve("types.safetensors");
    Files.write(path, SafetensorsBytes.file(header, data));
    try (Safetensors file = Safetensors.open(path)) {
      StoredTensor tensor = file.tensor("t");
      assertThat(tensor.dtype()).isEqualTo(dtype);
      assertThat(tensor.sizes()).isEqualTo(longs(sizes));
      assertThat(tensor.type()).isEqualTo(type);
      assertThat(tensor.shape())
          .isEqualTo(Shape.of(longs(shape).stream().mapToLong(Long::longValue).toArray()));
      assertThat(tensor.byteSize()).isEqualTo(bytes);
      assertThat(file.data("t").toArray(ValueLayout.JAVA_BYTE)).isEqualTo(data);
    }
  }

  private static List<Long> longs(String text) {
    return text.isEmpty() ? List.of() : Arrays.stream(text.split(",")).map(Long::valueOf).toList();
  }

  @Test
  @DisplayName("JAVA-2: F32, F16 and BF16 are read as floats, other types are refused")
  void floats() throws IOException {
    String header =
        """
        {"f": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
         "h": {"dtype": "F16", "shape": [3], "data_offsets": [8, 14]},
         "b": {"dtype": "BF16", "shape": [], "data_offsets": [14, 16]},
         "i": {"dtype": "I16", "shape": [0], "data_offsets": [16, 16]}}\
        """;
    // 1.5 and -0; 1, -2.5 and the smallest one; -2.5
    byte[] data =
        SafetensorsBytes.bytes(0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80, 0, 0x3c, 0, 0xc1, 1, 0, 0x20, 0xc0);
    Path path = folder.resolve("floats.safetensors");
    Files.write(path, SafetensorsBytes.file(header, data));
    try (Safetensors file = Safetensors.open(path)) {
      assertThat(file.floats("f")).containsExactly(1.5f, -0.0f);
      assertThat(file.floats("h")).containsExactly(1, -2.5f, 0x1p-24f);
      assertThat(file.floats("b")).containsExactly(-2.5f);
      assertThatThrownBy(() -> file.floats("i"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("\"i\" is I16, expected F32, F16 or BF16");
      assertThatThrownBy(() -> file.floats("none"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("no tensor \"none\"");
    }
  }

  @Test
  @DisplayName("JAVA-2: floats of more elements than an array has are refused with both numbers")
  void tooManyFloats() throws IOException {
    byte[] head =
        SafetensorsBytes.file(
            "{\"w\":{\"dtype\":\"BF16\",\"shape\":[32768,65536],\"data_offsets\":[0,4294967296]}}",
            new byte[0]);
    Path path = folder.resolve("sparse.safetensors");
    SafetensorsBytes.sparse(path, head, 1L << 32);
    try (Safetensors file = Safetensors.open(path)) {
      assertThat(file.tensor("w").shape()).isEqualTo(Shape.of(65536, 32768));
      assertThatThrownBy(() -> file.floats("w"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("\"w\" has 2147483648 elements, an array at most 2147483639");
    }
  }

  @Test
  @DisplayName("JAVA-2: a closed file says so, twice closed or not")
  void closed() throws IOException {
    Safetensors file = Safetensors.open(write(GOOD, 32));
    file.close();
    file.close();
    assertThatThrownBy(() -> file.data("w")).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("JAVA-2: a file that ends anywhere too soon is refused")
  void truncated() throws IOException {
    byte[] whole = Files.readAllBytes(write(GOOD, 32));
    for (int length = 0; length < whole.length; length++) {
      Path file = folder.resolve("cut.safetensors");
      Files.write(file, Arrays.copyOf(whole, length));
      assertThatThrownBy(() -> Safetensors.open(file)).isInstanceOf(GgmlException.class);
    }
  }

  @ParameterizedTest(name = "JAVA-2: {0} is refused")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "no JSON | {\"w\": | no JSON",
        "another JSON | [1, 2] | START_OBJECT expected",
        "an unknown dtype | {\"w\":{\"dtype\":\"F8\",\"shape\":[8],\"data_offsets\":[0,8]}} | F8",
        "a short range | {\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}} | 12"
            + " bytes",
        "a negative range | {\"w\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[-8,0]}} | -8",
        "a reversed range | {\"w\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[8,0]}} |"
            + " offsets",
        "a range over the end | {\"w\":{\"dtype\":\"I8\",\"shape\":[9],\"data_offsets\":[0,9]}} | 9"
            + " bytes",
        "a gap | {\"w\":{\"dtype\":\"I8\",\"shape\":[6],\"data_offsets\":[2,8]}} | ends at 0",
        "data of no tensor | {\"w\":{\"dtype\":\"I8\",\"shape\":[6],\"data_offsets\":[0,6]}} | has"
            + " 8",
        "an overlap | {\"a\":{\"dtype\":\"I8\",\"shape\":[6],\"data_offsets\":[0,6]},"
            + "\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[4,8]}} | ends at 6",
        "half a byte | {\"w\":{\"dtype\":\"F4\",\"shape\":[5,3],\"data_offsets\":[0,8]}} |"
            + " [5, 3] of 4 bits each are 60 bits",
        "a huge shape without data |"
            + " {\"w\":{\"dtype\":\"I8\",\"shape\":[0,2,4611686018427387904,4],\"data_offsets\":[0,0]}}"
            + " | more elements",
        "a huge shape | {\"w\":{\"dtype\":\"I8\",\"shape\":[9000000000,9000000000],"
            + "\"data_offsets\":[0,8]}} | more elements",
        "a number too large | {\"w\":{\"dtype\":\"I8\",\"shape\":[99999999999999999999],"
            + "\"data_offsets\":[0,8]}} | the shape of w: 99999999999999999999, expected 0 to"
            + " 9223372036854775807",
        "an offset too large | {\"w\":{\"dtype\":\"I8\",\"shape\":[8],"
            + "\"data_offsets\":[0,9223372036854775808]}} | the offsets of w: 9223372036854775808,"
            + " expected 0 to 9223372036854775807",
        "a negative size | {\"w\":{\"dtype\":\"I8\",\"shape\":[-8],\"data_offsets\":[0,8]}} |"
            + " negative",
        "a fraction | {\"w\":{\"dtype\":\"I8\",\"shape\":[8.5],\"data_offsets\":[0,8]}} |"
            + " NUMBER_INT",
        "no shape | {\"w\":{\"dtype\":\"I8\",\"data_offsets\":[0,8]}} | needs a dtype",
        "a name twice | {\"a\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]},"
            + "\"a\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}} | Duplicate",
        "more after the header | {} {} | after the header",
      })
  void badHeader(String name, String header, String message) throws IOException {
    Path file = write(header, 8);
    assertThatThrownBy(() -> Safetensors.open(file))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("JAVA-2: texts and numbers in a header may be as long as the header")
  void longTexts() throws IOException {
    String text = "x".repeat(20_000_001);
    Path file =
        write(
            "{\"__metadata__\":{\"note\":\"%s\"},\"%s\":%s}"
                .formatted(
                    text,
                    "n".repeat(60_000),
                    "{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}"),
            8);
    try (Safetensors opened = Safetensors.open(file)) {
      assertThat(opened.metadata().get("note")).isEqualTo(text);
      assertThat(opened.tensors().iterator().next().name()).hasSize(60_000);
    }
    Path number =
        write(
            "{\"w\":{\"dtype\":\"I8\",\"shape\":[%s],\"data_offsets\":[0,8]}}"
                .formatted("7".repeat(2000)),
            8);
    assertThatThrownBy(() -> Safetensors.open(number))
        .isInstanceOf(GgmlException.class)
        .hasMessageEndingWith(
            "the shape of w: %s..., expected 0 to 9223372036854775807".formatted("7".repeat(40)));
  }

  @Test
  @DisplayName("JAVA-2: a header longer than the file, or than 100 MB, is refused")
  void hugeHeader() throws IOException {
    for (long length : new long[] {1000, 100_000_001, Long.MAX_VALUE, -1}) {
      Path file = folder.resolve("huge.safetensors");
      Files.write(
          file, ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(length).array());
      assertThatThrownBy(() -> Safetensors.open(file))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("header");
    }
  }

  @Test
  @DisplayName("JAVA-2: data are loaded into contiguous tensors only, views of others among them")
  void layouts() throws IOException {
    Device cpu = Ggml.load().device("CPU");
    try (Safetensors file = Safetensors.open(write(GOOD, 32));
        Context context = Context.forTensors(6)) {
      Tensor storage = context.newTensor(Type.F32, 8, 2);
      Tensor matrix = context.newTensor(Type.F32, 2, 3);
      context.allocate(cpu);
      storage.setFloats(new float[16]);
      matrix.setFloats(new float[6]);
      Tensor padded = context.view2d(storage, 3, 2, 8 * Float.BYTES, 0);
      Tensor transposed = context.transpose(matrix);
      for (Tensor tensor : List.of(padded, transposed)) {
        assertThatThrownBy(() -> file.load("w", tensor))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("contiguous")
            .hasMessageContaining("F32 [3, 2]");
      }
      assertThat(storage.getFloats()).containsOnly(0);
      assertThat(matrix.getFloats()).containsOnly(0);

      file.load("w", context.view2d(storage, 3, 2, 3 * Float.BYTES, 4 * Float.BYTES));
      assertThat(storage.getFloats())
          .containsExactly(0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0);
    }
  }

  @Test
  @DisplayName("JAVA-2: a copy of a tensor's bytes outlives the file")
  void copies() throws IOException {
    byte[] bytes;
    try (Safetensors file = Safetensors.open(write(GOOD, 32))) {
      bytes = file.getBytes("w");
      assertThatThrownBy(() -> file.getBytes("x")).isInstanceOf(IllegalArgumentException.class);
    }
    float[] values = new float[6];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
    assertThat(values).containsExactly(1, 2, 3, 4, 5, 6);
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = "a mapped file cannot be cut short there")
  @DisplayName("JAVA-2: a file that is cut short after it was opened is named")
  void cutShort() throws IOException {
    int elements = 1 << 16;
    Path path =
        write(
            "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%d]}}"
                .formatted(elements, 4 * elements),
            4 * elements);
    Device cpu = Ggml.load().device("CPU");
    try (Safetensors file = Safetensors.open(path);
        Context context = Context.forTensors(1)) {
      Tensor w = file.newTensor(context, "w");
      context.allocate(cpu);
      file.load("w", w);
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(4096);
      }
      for (ThrowingCallable read :
          List.<ThrowingCallable>of(
              () -> file.load("w", w), () -> file.getBytes("w"), () -> file.floats("w"))) {
        assertThatThrownBy(read)
            .isInstanceOf(GgmlException.class)
            .hasMessageContaining("cannot read " + path)
            .hasMessageContaining("cut short")
            .hasCauseInstanceOf(InternalError.class);
      }
      Path copy = Files.writeString(folder.resolve("copy.safetensors"), "old");
      SafetensorsWriter writer = new SafetensorsWriter().add(file.tensor("w"), file.data("w"));
      assertThatThrownBy(() -> writer.write(copy))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("the data of \"w\"")
          .hasCauseInstanceOf(InternalError.class);
      assertThat(copy).hasContent("old");
    }
  }

  @Test
  @DisplayName("JAVA-2: a closed file is named by whatever reads it")
  void closedIsNamed() throws IOException {
    Device cpu = Ggml.load().device("CPU");
    Safetensors file = Safetensors.open(write(GOOD, 32));
    try (Context context = Context.forTensors(1)) {
      Tensor w = file.newTensor(context, "w");
      context.allocate(cpu);
      file.close();
      for (ThrowingCallable read :
          List.<ThrowingCallable>of(
              () -> file.load("w", w), () -> file.getBytes("w"), () -> file.data("w"))) {
        assertThatThrownBy(read)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining(file.path() + " is closed");
      }
    }
  }

  /** A write into a full pipe keeps the mapped bytes in use until somebody reads from the pipe. */
  @Test
  @Timeout(60)
  @DisplayName("JAVA-2: a file whose bytes are in use stays open when closed, and closes later")
  void closeInUse() throws Exception {
    int bytes = 4 << 20;
    Path path =
        write(
            "{\"w\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}"
                .formatted(bytes, bytes),
            bytes);
    Pipe pipe = Pipe.open();
    Safetensors file = Safetensors.open(path);
    ByteBuffer mapped = file.data("w").asByteBuffer();
    FutureTask<Integer> write = new FutureTask<>(() -> pipe.sink().write(mapped));
    Thread writer = Thread.ofPlatform().start(write);
    try (Pipe.SourceChannel source = pipe.source()) {
      ByteBuffer some = ByteBuffer.allocate(1 << 16);
      int read = source.read(some);
      assertThatThrownBy(file::close)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(path + " stays open");
      assertThat(file.data("w").byteSize()).isEqualTo(bytes);
      while (read < bytes) {
        read += source.read(some.clear());
      }
      writer.join();
      assertThat(write.get()).isEqualTo(bytes);
    }
    file.close();
    assertThatThrownBy(() -> file.data("w"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(() -> mapped.get(0)).isInstanceOf(IllegalStateException.class);
    pipe.sink().close();
  }
}
