package org.ggmlext.examples.int8;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.ggmlext.ext.ops.Int8Checkpoint;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConvertToInt8Test {
  private static final Pattern LAYERS = Pattern.compile("blocks\\..*");
  private static final int N = 5;
  private static final double[][] H4 = {
    {0.5, 0.5, 0.5, -0.5}, {0.5, 0.5, -0.5, 0.5}, {0.5, -0.5, 0.5, 0.5}, {-0.5, 0.5, 0.5, 0.5}
  };

  @TempDir private Path folder;

  private Path in() {
    return folder.resolve("in.safetensors");
  }

  private Path out() {
    return folder.resolve("out.safetensors");
  }

  private static float[] values(int count) {
    Random random = new Random(3);
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    values[7] = 40; // an outlier
    return values;
  }

  private static MemorySegment segment(float... values) {
    return MemorySegment.ofArray(values);
  }

  /** An element of the rotated row, by the definition: a row of the Kronecker power times x. */
  private static double rotated(float[] rows, int features, int n, int i, int group) {
    double sum = 0;
    for (int j = 0; j < group; j++) {
      double product = 1;
      for (int block = group / 4; block >= 1; block /= 4) {
        product *= H4[i % group / block % 4][j / block % 4];
      }
      sum += product * rows[n * features + i - i % group + j];
    }
    return sum;
  }

  @ParameterizedTest(name = "{0} features, limit {1}: groups of {2}")
  @CsvSource({
    "512, 256, 256",
    "384, 256, 64",
    "384, 16, 16",
    "36, 256, 4",
    "33, 64, 1",
    "64, 1, 1"
  })
  @DisplayName("I8-2: weights are rotated in groups that divide, scaled by row and rounded")
  void quantizes(int features, int limit, int group) {
    float[] rows = values(N * features);
    new SafetensorsWriter()
        .add("blocks.0.weight", Type.F32, Shape.of(features, N), segment(rows))
        .write(in());

    assertThat(ConvertToInt8.convert(in(), out(), LAYERS, limit)).isEqualTo(1);

    try (Safetensors file = Safetensors.open(out())) {
      assertThat(Int8Checkpoint.of(file).layers()).containsExactly("blocks.0");
      String text =
          new String(
              file.data("blocks.0.comfy_quant").toArray(ValueLayout.JAVA_BYTE),
              StandardCharsets.UTF_8);
      assertThat(text)
          .contains(group == 1 ? "\"convrot\": false" : "\"convrot_groupsize\": " + group + "}");
      assertThat(file.tensor("blocks.0.comfy_quant").dtype()).isEqualTo("U8");
      assertThat(file.tensor("blocks.0.weight_scale").shape()).isEqualTo(Shape.of(1, N));
      byte[] weight = file.data("blocks.0.weight").toArray(ValueLayout.JAVA_BYTE);
      MemorySegment scales = file.data("blocks.0.weight_scale");
      for (int n = 0; n < N; n++) {
        double scale =
            scales.getAtIndex(
                ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), n);
        double largest = 0;
        for (int k = 0; k < features; k++) {
          double expected = rotated(rows, features, n, k, group);
          largest = Math.max(largest, Math.abs(expected));
          assertThat((double) weight[n * features + k]).isCloseTo(expected / scale, within(0.5001));
        }
        assertThat(scale).isCloseTo(largest / 127, within(largest * 1e-7));
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: only matching matrices are converted, the rest is copied byte for byte")
  void copiesTheRest() {
    new SafetensorsWriter()
        .add("embed.weight", Type.F32, Shape.of(8, 2), segment(values(16)))
        .add("blocks.0.weight", Type.BF16, Shape.of(4), shorts(0x3f80, 0xc000, 0, 0))
        .add("blocks.1.weight", Type.F16, Shape.of(4, 2), shorts(0, 0, 0, 0, 0, 0, 0, 0xc000))
        .add("blocks.0.bias", Type.F32, Shape.of(1), segment(0.25f))
        .add("blocks.norm.weight", Type.F32, Shape.of(8), segment(values(8)))
        .add("note", (byte) 5)
        .write(in());

    assertThat(ConvertToInt8.convert(in(), out(), LAYERS, 4)).isEqualTo(1);

    try (Safetensors before = Safetensors.open(in());
        Safetensors after = Safetensors.open(out())) {
      for (String name :
          new String[] {
            "embed.weight", "blocks.0.weight", "blocks.0.bias", "blocks.norm.weight", "note"
          }) {
        assertThat(after.tensor(name).dtype()).isEqualTo(before.tensor(name).dtype());
        assertThat(after.tensor(name).shape()).isEqualTo(before.tensor(name).shape());
        assertThat(after.data(name).mismatch(before.data(name))).isEqualTo(-1);
      }
      // A row of zeros has scale 0; of [0, 0, 0, -2] the rotation is [1, -1, -1, -1].
      assertThat(after.data("blocks.1.weight").toArray(ValueLayout.JAVA_BYTE))
          .containsExactly(0, 0, 0, 0, 127, -127, -127, -127);
      assertThat(after.data("blocks.1.weight_scale").toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
          .containsExactly(0, 1 / 127f);
    }
  }

  /** A file by hand: its header padded with spaces to a multiple of eight bytes, then data. */
  private static byte[] file(String header, byte[] data) {
    byte[] text = header.getBytes(StandardCharsets.UTF_8);
    int length = (text.length + 7) / 8 * 8;
    ByteBuffer file = ByteBuffer.allocate(8 + length + data.length).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(length).put(text);
    file.put(" ".repeat(length - text.length).getBytes(StandardCharsets.US_ASCII));
    return file.put(data).array();
  }

  private static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }

  private static byte[] joined(byte[]... parts) {
    ByteBuffer all = ByteBuffer.allocate(Arrays.stream(parts).mapToInt(part -> part.length).sum());
    Arrays.stream(parts).forEach(all::put);
    return all.array();
  }

  @Test
  @DisplayName("JAVA-2: a file by hand is converted to one by hand: types, shapes, metadata stay")
  void keepsEverythingElse() throws IOException {
    byte[] ids = bytes(1, 2, 3, 4, 5, 6, 7, 8);
    byte[] position = bytes(9, 10, 11, 12, 13, 14, 15, 16);
    byte[] weight = bytes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0); // 0, 0, 0, -2
    byte[] bias = bytes(17, 18, 19, 20);
    byte[] logit = bytes(21, 22, 23, 24);
    byte[] conv = bytes(25, 26, 27, 28);
    byte[] mask = bytes(1, 0, 1, 1);
    byte[] table = bytes(29, 30, 31, 32, 33, 34);
    byte[] eight = bytes(35, 36);
    byte[] four = bytes(37);
    String metadata = "{\"__metadata__\":{\"format\":\"tf\",\"modelspec.title\":\"Zwölf\"},";
    Files.write(
        in(),
        file(
            metadata
                + "\"ids\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                + "\"pos_embed\":{\"dtype\":\"F32\",\"shape\":[1,2,1],\"data_offsets\":[8,16]},"
                + "\"blocks.0.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[16,32]},"
                + "\"blocks.0.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32,36]},"
                + "\"logit_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[36,40]},"
                + "\"conv3d\":{\"dtype\":\"F16\",\"shape\":[1,2,1,1,1],\"data_offsets\":[40,44]},"
                + "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[44,48]},"
                + "\"table\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[48,54]},"
                + "\"eight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2],\"data_offsets\":[54,56]},"
                + "\"blocks.1.weight\":{\"dtype\":\"F16\",\"shape\":[0,4],\"data_offsets\":[56,56]},"
                + "\"four\":{\"dtype\":\"F4\",\"shape\":[1,2],\"data_offsets\":[56,57]}}",
            joined(ids, position, weight, bias, logit, conv, mask, table, eight, four)));

    assertThat(ConvertToInt8.convert(in(), out(), LAYERS, 256)).isEqualTo(1);

    byte[] text =
        "{\"format\": \"int8_tensorwise\", \"convrot\": true, \"convrot_groupsize\": 4}"
            .getBytes(StandardCharsets.UTF_8);
    assertThat(text).hasSize(70);
    // [0, 0, 0, -2] is rotated to [1, -1, -1, -1]; the scale is 1 / 127, 0x3c010204.
    byte[] quantized = bytes(127, -127, -127, -127);
    byte[] scale = bytes(4, 2, 1, 0x3c);
    assertThat(Files.readAllBytes(out()))
        .isEqualTo(
            file(
                metadata
                    + "\"ids\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                    + "\"pos_embed\":{\"dtype\":\"F32\",\"shape\":[1,2,1],\"data_offsets\":[8,16]},"
                    + "\"blocks.0.weight_scale\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[16,20]},"
                    + "\"blocks.0.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[20,24]},"
                    + "\"logit_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]},"
                    + "\"conv3d\":{\"dtype\":\"F16\",\"shape\":[1,2,1,1,1],\"data_offsets\":[28,32]},"
                    + "\"blocks.1.weight\":{\"dtype\":\"F16\",\"shape\":[0,4],\"data_offsets\":[32,32]},"
                    + "\"blocks.0.weight\":{\"dtype\":\"I8\",\"shape\":[1,4],\"data_offsets\":[32,36]},"
                    + "\"blocks.0.comfy_quant\":{\"dtype\":\"U8\",\"shape\":[70],\"data_offsets\":[36,106]},"
                    + "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[2,2],\"data_offsets\":[106,110]},"
                    + "\"table\":{\"dtype\":\"U8\",\"shape\":[2,3],\"data_offsets\":[110,116]},"
                    + "\"eight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2],\"data_offsets\":[116,118]},"
                    + "\"four\":{\"dtype\":\"F4\",\"shape\":[1,2],\"data_offsets\":[118,119]}}",
                joined(
                    ids, position, scale, bias, logit, conv, quantized, text, mask, table, eight,
                    four)));
    try (Safetensors file = Safetensors.open(out())) {
      assertThat(Int8Checkpoint.of(file).layers()).containsExactly("blocks.0");
    }
  }

  private void writeLayer(float... row) {
    new SafetensorsWriter()
        .add("blocks.0.weight", Type.F32, Shape.of(row.length / 2, 2), segment(row))
        .write(in());
  }

  @Test
  @DisplayName(
      "JAVA-2: a file without metadata gets the format pt, which PyTorch's readers ask for")
  void addsFormat() {
    writeLayer(values(8));
    ConvertToInt8.convert(in(), out(), LAYERS, 256);
    try (Safetensors file = Safetensors.open(out())) {
      assertThat(file.metadata()).containsExactly(Map.entry("format", "pt"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"symbolic", "hard", "spelling"})
  @DisplayName("JAVA-2: an output that is the input by another name is refused, the input stays")
  void refusesLinks(String kind) throws IOException {
    writeLayer(values(8));
    byte[] before = Files.readAllBytes(in());
    Path out =
        switch (kind) {
          case "symbolic" -> Files.createSymbolicLink(out(), in());
          case "hard" -> Files.createLink(out(), in());
          default ->
              Files.createDirectory(folder.resolve("a")).resolve("..").resolve("in.safetensors");
        };
    assertThatThrownBy(() -> ConvertToInt8.convert(in(), out, LAYERS, 256))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(out + " is the input, too");
    assertThat(in()).hasBinaryContent(before);
  }

  @Test
  @DisplayName("JAVA-2: an output that is a link is written where it leads, and stays a link")
  void followsLink() throws IOException {
    writeLayer(values(8));
    Path elsewhere = folder.resolve("elsewhere.safetensors");
    Files.writeString(elsewhere, "old");
    Files.createSymbolicLink(out(), elsewhere);
    ConvertToInt8.convert(in(), out(), LAYERS, 256);
    assertThat(Files.isSymbolicLink(out())).isTrue();
    try (Safetensors file = Safetensors.open(elsewhere)) {
      assertThat(Int8Checkpoint.of(file).layers()).containsExactly("blocks.0");
    }
  }

  @Test
  @DisplayName("JAVA-2: a conversion that fails leaves the output of an earlier one")
  void keepsOldOutput() throws IOException {
    writeLayer(1, 2, 3, Float.NaN);
    Files.writeString(out(), "old");
    assertThatThrownBy(() -> ConvertToInt8.convert(in(), out(), LAYERS, 256))
        .hasMessageContaining("value 1 of row 1 is NaN");
    assertThat(out()).hasContent("old");
    assertThat(folder.toFile().list())
        .containsExactlyInAnyOrder("in.safetensors", "out.safetensors");
  }

  @ParameterizedTest(name = "[{0}, {1}]")
  @CsvSource(
      delimiter = '|',
      value = {
        "32768 | 65536 | \"blocks.0.weight\" has 2147483648 elements, an array at most 2147483639",
        "1 | 131072 | blocks.0.weight: 131072 features, a layer in INT8 has at most 131071",
      })
  @DisplayName("JAVA-2: a layer that is too large is refused with both numbers")
  void refusesLarge(long outputs, long features, String message) throws IOException {
    long size = 2 * outputs * features;
    byte[] head =
        file(
            "{\"blocks.0.weight\":{\"dtype\":\"BF16\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}"
                .formatted(outputs, features, size),
            new byte[0]);
    try (FileChannel sparse = FileChannel.open(in(), CREATE_NEW, SPARSE, WRITE)) {
      sparse.write(ByteBuffer.wrap(head));
      sparse.write(ByteBuffer.allocate(1), head.length + size - 1);
    }
    assertThatThrownBy(() -> ConvertToInt8.convert(in(), out(), LAYERS, 256))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
    assertThat(out()).doesNotExist();
  }

  private static MemorySegment shorts(int... bits) {
    short[] values = new short[bits.length];
    for (int i = 0; i < bits.length; i++) {
      values[i] = (short) bits[i];
    }
    return MemorySegment.ofArray(values);
  }

  private void refused(String name, float[] rows, Path out, int group, String message) {
    new SafetensorsWriter()
        .add(name, Type.F32, Shape.of(4, rows.length / 4), segment(rows))
        .write(in());
    assertThatThrownBy(() -> ConvertToInt8.convert(in(), out, LAYERS, group))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("JAVA-2: what cannot be converted is refused with what was expected")
  void refuses() {
    refused("blocks.0.weight", values(8), in(), 256, "is the input, too");
    refused("blocks.0.weight", values(8), out(), 32, "the group is 32, expected 1, 4, 16");
    refused("layers.0.weight", values(8), out(), 256, "has no F32, F16 or BF16 matrix");
    float[] bad = values(8);
    bad[6] = Float.NaN;
    refused("blocks.0.weight", bad, out(), 256, "blocks.0.weight: value 2 of row 1 is NaN");
    assertThatThrownBy(() -> ConvertToInt8.convert(folder.resolve("none"), out(), LAYERS, 256))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot read");
  }
}
