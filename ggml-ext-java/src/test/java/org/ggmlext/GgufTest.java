package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.bindings.gguf_h;
import org.ggmlext.bindings.gguf_init_params;
import org.ggmlext.ext.CudaModule;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

class GgufTest {
  @TempDir private Path folder;

  private static GgufWriter example() {
    return new GgufWriter()
        .set("general.architecture", "test")
        .set("a.u8", GgufValue.integer(GgufType.UINT8, 255))
        .set("a.i8", GgufValue.integer(GgufType.INT8, -128))
        .set("a.u16", GgufValue.integer(GgufType.UINT16, 65535))
        .set("a.i16", GgufValue.integer(GgufType.INT16, -32768))
        .set("a.u32", GgufValue.uint32(4294967295L))
        .set("a.i32", GgufValue.int32(-5))
        .set("a.i64", GgufValue.int64(Long.MIN_VALUE))
        .set("a.f32", GgufValue.float32(1.5f))
        .set("a.f64", GgufValue.float64(-2.25))
        .set("a.bool", GgufValue.bool(true))
        .set("a.strings", GgufValue.strings(List.of("", "zwei", "三")))
        .set("a.ints", GgufValue.ints(1, -2))
        .set("a.floats", GgufValue.floats(0.5f, Float.NaN))
        .add("w", Type.F32, Shape.of(3, 2), MemorySegment.ofArray(new float[] {1, 2, 3, 4, 5, 6}))
        .add("q", Type.Q8_0, Shape.of(32), MemorySegment.ofArray(block()));
  }

  private static byte[] block() {
    byte[] block = new byte[34];
    for (int i = 0; i < block.length; i++) {
      block[i] = (byte) (7 * i);
    }
    return block;
  }

  private static boolean ggmlReads(Path file) {
    Ggml.load();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = gguf_init_params.allocate(arena);
      gguf_init_params.no_alloc(params, true);
      MemorySegment gguf = gguf_h.gguf_init_from_file(arena.allocateFrom(file.toString()), params);
      if (gguf.address() == 0) {
        return false;
      }
      gguf_h.gguf_free(gguf);
      return true;
    }
  }

  private Path write() {
    Path file = folder.resolve("model.gguf");
    example().write(file);
    return file;
  }

  @Test
  @DisplayName("JAVA-2: tensors' names of 63 bytes are written, longer ones refused as by ggml")
  void longNames() {
    MemorySegment data = MemorySegment.ofArray(new float[1]);
    String longest = "ä".repeat(31) + "x";
    GgufWriter writer = new GgufWriter().add(longest, Type.F32, Shape.of(1), data);
    String tooLong = "ä".repeat(32);
    assertThatThrownBy(() -> writer.add(tooLong, Type.F32, Shape.of(1), data))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "a tensor's name has at most 63 bytes, as ggml reads it; \"%s\" has 64"
                .formatted(tooLong));
    Path file = folder.resolve("names.gguf");
    writer.write(file);
    assertThat(ggmlReads(file)).isTrue();
    try (GgufFile read = GgufFile.open(file);
        Context context = Context.forTensors(1)) {
      assertThat(read.newTensor(context, longest).name()).isEqualTo(longest);
    }
  }

  @Test
  @DisplayName("JAVA-2: of another writer's longer name a tensor keeps the characters that fit")
  void foreignNames() throws IOException {
    Path file = folder.resolve("foreign.gguf");
    String name = "b".repeat(61);
    new GgufWriter()
        .add(name, Type.F32, Shape.of(1), MemorySegment.ofArray(new float[] {5}))
        .write(file);
    // Three characters more, 67 bytes; the padding in front of the data gives their room.
    byte[] bytes = Files.readAllBytes(file);
    int at = new String(bytes, StandardCharsets.ISO_8859_1).indexOf(name) + name.length();
    byte[] more = "a三€".getBytes(StandardCharsets.UTF_8);
    ByteBuffer changed = ByteBuffer.allocate(bytes.length + 32).order(ByteOrder.LITTLE_ENDIAN);
    changed.put(bytes, 0, at).put(more).put(bytes, at, bytes.length - 32 - at);
    changed.putLong(at - name.length() - Long.BYTES, name.length() + more.length);
    int data = (at + more.length + 24 + 31) / 32 * 32;
    Files.write(file, Arrays.copyOf(changed.array(), data + 32));
    assertThat(ggmlReads(file)).isFalse();
    try (GgufFile read = GgufFile.open(file);
        Context context = Context.forTensors(1)) {
      assertThat(read.newTensor(context, name + "a三€").name()).isEqualTo(name + "a");
    }
  }

  @Test
  @DisplayName("JAVA-2: what is written to a GGUF file is read from it")
  void roundTrip() {
    try (GgufFile file = GgufFile.open(write())) {
      assertThat(file.version()).isEqualTo(3);
      assertThat(file.alignment()).isEqualTo(32);
      assertThat(file.string("general.architecture")).contains("test");
      assertThat(file.integer("a.u8")).contains(255L);
      assertThat(file.integer("a.i8")).contains(-128L);
      assertThat(file.integer("a.u16")).contains(65535L);
      assertThat(file.integer("a.i16")).contains(-32768L);
      assertThat(file.integer("a.u32")).contains(4294967295L);
      assertThat(file.integer("a.i32")).contains(-5L);
      assertThat(file.integer("a.i64")).contains(Long.MIN_VALUE);
      assertThat(file.number("a.f32")).contains(1.5);
      assertThat(file.number("a.f64")).contains(-2.25);
      assertThat(file.bool("a.bool")).contains(true);
      assertThat(file.strings("a.strings")).contains(List.of("", "zwei", "三"));
      assertThat(file.integers("a.ints")).contains(List.of(1L, -2L));
      assertThat(file.floats("a.floats")).contains(List.of(0.5f, Float.NaN));
      assertThat(file.string("no.such.key")).isEmpty();
      assertThatThrownBy(() -> file.string("a.u8"))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("UINT8");
      assertThat(file.tensors()).extracting(StoredTensor::name).containsExactly("w", "q");
      assertThat(file.tensor("w").shape()).isEqualTo(Shape.of(3, 2));
      assertThat(file.tensor("w").sizes()).containsExactly(2L, 3L);
      assertThat(file.find("x")).isNull();
      assertThatThrownBy(() -> file.tensor("x")).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: a write that fails midway leaves the old file whole, and no temporary one")
  void failsMidway() throws IOException {
    Path file = write();
    byte[] before = Files.readAllBytes(file);
    GgufWriter writer = example();
    try (Arena arena = Arena.ofConfined()) {
      writer.add("last", Type.I8, Shape.of(5), arena.allocate(5));
    }
    assertThatThrownBy(() -> writer.write(file)).isInstanceOf(IllegalStateException.class);
    assertThat(file).hasBinaryContent(before);
    assertThat(folder.toFile().list()).containsExactly("model.gguf");
  }

  @Test
  @DisplayName("JAVA-2: a file's tensors are loaded into a context, bit by bit")
  void load() {
    Device cpu = Ggml.load().device("CPU");
    try (GgufFile file = GgufFile.open(write());
        Context context = Context.forTensors(4)) {
      Tensor w = file.newTensor(context, "w");
      Tensor q = file.newTensor(context, "q");
      Tensor other = context.newTensor(Type.F32, 6);
      context.allocate(cpu);
      file.load("w", w);
      file.load("q", q);
      assertThat(w.name()).isEqualTo("w");
      assertThat(w.getFloats()).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(q.getBytes()).isEqualTo(block());
      assertThatThrownBy(() -> file.load("w", other))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("[3, 2]");
      Path again = folder.resolve("again.gguf");
      new GgufWriter().add("w", w).write(again);
      try (GgufFile copy = GgufFile.open(again)) {
        assertThat(copy.data("w").mismatch(file.data("w"))).isEqualTo(-1);
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: ggml's own reader reads what we write")
  void ggmlReads() throws IOException {
    Ggml.load();
    Path path = write();
    try (Arena arena = Arena.ofConfined();
        GgufFile file = GgufFile.open(path)) {
      MemorySegment params = gguf_init_params.allocate(arena);
      gguf_init_params.no_alloc(params, true);
      MemorySegment gguf = gguf_h.gguf_init_from_file(arena.allocateFrom(path.toString()), params);
      assertThat(gguf.address()).isNotZero();
      assertThat(gguf_h.gguf_get_n_kv(gguf)).isEqualTo(file.metadata().size());
      long key = gguf_h.gguf_find_key(gguf, arena.allocateFrom("a.i64"));
      assertThat(gguf_h.gguf_get_val_i64(gguf, key)).isEqualTo(Long.MIN_VALUE);
      long strings = gguf_h.gguf_find_key(gguf, arena.allocateFrom("a.strings"));
      assertThat(gguf_h.gguf_get_arr_str(gguf, strings, 2).reinterpret(16).getString(0))
          .isEqualTo("三");
      assertThat(gguf_h.gguf_get_n_tensors(gguf)).isEqualTo(2);
      long q = gguf_h.gguf_find_tensor(gguf, arena.allocateFrom("q"));
      assertThat(gguf_h.gguf_get_tensor_offset(gguf, q)).isEqualTo(file.tensor("q").offset());
      assertThat(gguf_h.gguf_get_tensor_type(gguf, q)).isEqualTo(Type.Q8_0.value());
      MemorySegment whole = MemorySegment.ofArray(Files.readAllBytes(path));
      long begin = gguf_h.gguf_get_data_offset(gguf) + gguf_h.gguf_get_tensor_offset(gguf, q);
      assertThat(whole.asSlice(begin, 34).mismatch(file.data("q"))).isEqualTo(-1);
      gguf_h.gguf_free(gguf);
    }
  }

  @Test
  @DisplayName("JAVA-2: a file that ends anywhere too soon is refused")
  void truncated() throws IOException {
    byte[] whole = Files.readAllBytes(write());
    // The last bytes are padding, which may be missing.
    int needed = whole.length - 30;
    for (int length = 0; length < needed; length++) {
      Path file = folder.resolve("cut.gguf");
      Files.write(file, Arrays.copyOf(whole, length));
      assertThatThrownBy(() -> GgufFile.open(file)).isInstanceOf(GgmlException.class);
    }
  }

  @Test
  @DisplayName("JAVA-2: a file with any byte changed is read or refused, never worse")
  void garbage() throws IOException {
    byte[] whole = Files.readAllBytes(write());
    Random random = new Random(1);
    int refused = 0;
    for (int i = 0; i < 2000; i++) {
      byte[] broken = whole.clone();
      broken[random.nextInt(broken.length)] = (byte) random.nextInt();
      Path file = folder.resolve("broken.gguf");
      Files.write(file, broken);
      try (GgufFile opened = GgufFile.open(file)) {
        opened.tensors().forEach(tensor -> opened.data(tensor.name()));
      } catch (GgmlException e) {
        assertThat(e).hasMessageContaining("broken.gguf");
        refused++;
      }
    }
    assertThat(refused).isPositive();
  }

  @Test
  @DisplayName("JAVA-2: heads that cannot be are refused with the reason")
  void badHeads() throws IOException {
    assertRefused(head(0x12345678, 3, 0, 0), "no GGUF file");
    assertRefused(head(0x46554747, 9, 0, 0), "version 9");
    assertRefused(head(0x46554747, 3, Long.MAX_VALUE, 0), "number of tensors");
    assertRefused(head(0x46554747, 3, 0, -1), "number of metadata values");
    assertThatThrownBy(() -> GgufFile.open(folder.resolve("nowhere.gguf")))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("nowhere.gguf");
  }

  private static byte[] head(int magic, int version, long tensors, long values) {
    return ByteBuffer.allocate(24)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(magic)
        .putInt(version)
        .putLong(tensors)
        .putLong(values)
        .array();
  }

  private void assertRefused(byte[] bytes, String message) throws IOException {
    Path file = folder.resolve("bad.gguf");
    Files.write(file, bytes);
    assertThatThrownBy(() -> GgufFile.open(file))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("JAVA-2: the writer refuses what readers would")
  void badWrites() {
    GgufWriter writer = new GgufWriter();
    MemorySegment bytes = MemorySegment.ofArray(new byte[8]);
    writer.add("w", Type.F32, Shape.of(2), bytes);
    assertThatThrownBy(() -> writer.add("w", Type.F32, Shape.of(2), bytes))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> writer.add("x", Type.F32, Shape.of(3), bytes))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("12");
    assertThatThrownBy(() -> writer.set("general.alignment", GgufValue.uint32(3)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> writer.add("huge", Type.F32, new Shape(1L << 61, 1, 1, 1), bytes))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("\"huge\" F32 [2305843009213693952]");
  }

  @Test
  @DisplayName("JAVA-2: the alignments that are written are those that are read")
  void alignments() {
    for (long alignment : new long[] {0, 3, 1L << 31, 0xffff_ffffL}) {
      assertThatThrownBy(
              () -> new GgufWriter().set("general.alignment", GgufValue.uint32(alignment)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("not " + alignment + " as UINT32");
    }
    assertThatThrownBy(() -> new GgufWriter().set("general.alignment", GgufValue.int32(64)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("64 as INT32");
    Path path = folder.resolve("aligned.gguf");
    for (int alignment : new int[] {1, 8, 4096}) {
      example().set("general.alignment", GgufValue.uint32(alignment)).write(path);
      try (GgufFile file = GgufFile.open(path)) {
        assertThat(file.alignment()).isEqualTo(alignment);
        assertThat(file.getBytes("q")).isEqualTo(block());
      }
    }
    // The largest one is not written: a file is filled up to it.
    new GgufWriter().set("general.alignment", GgufValue.uint32(1 << 30));
  }

  @Test
  @DisplayName("JAVA-2: a value that is not of its type is refused when it is made")
  void valuesOfTheirTypes() {
    assertThatThrownBy(() -> GgufValue.integer(GgufType.UINT8, 256))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("256 does not fit into UINT8");
    assertThatThrownBy(() -> GgufValue.integer(GgufType.FLOAT32, 1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new GgufValue(GgufType.UINT32, "x", GgufType.UINT32))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("UINT32 holds a Long, not the String \"x\"");
    assertThatThrownBy(() -> new GgufValue(GgufType.INT8, 128L, GgufType.INT8))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new GgufValue(GgufType.BOOL, true, GgufType.INT8))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new GgufValue(GgufType.ARRAY, List.of(1L, 2.0), GgufType.INT8))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new GgufValue(GgufType.ARRAY, List.of(), GgufType.ARRAY))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new GgufValue(GgufType.ARRAY, 1L, GgufType.INT8))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(new GgufValue(GgufType.UINT64, -1L, GgufType.UINT64).value()).isEqualTo(-1L);
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = "a mapped file cannot be cut short there")
  @DisplayName("JAVA-2: a file that is cut short after it was opened is named, whoever reads it")
  void cutShort() throws IOException {
    int elements = 1 << 16;
    Path path = folder.resolve("long.gguf");
    new GgufWriter()
        .add("w", Type.F32, Shape.of(elements), MemorySegment.ofArray(new float[elements]))
        .write(path);
    Device cpu = Ggml.load().device("CPU");
    try (GgufFile file = GgufFile.open(path);
        Context context = Context.forTensors(1)) {
      Tensor w = file.newTensor(context, "w");
      context.allocate(cpu);
      MemorySegment data = file.data("w");
      GgufWriter writer = new GgufWriter().add("w", Type.F32, Shape.of(elements), data);
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(4096);
      }
      assertCutShort(() -> file.load("w", w), path.toString());
      assertCutShort(() -> file.getBytes("w"), path.toString());
      assertCutShort(() -> w.setBytes(0, data), "the bytes for \"w\" (F32 [65536])");
      Path copy = Files.writeString(folder.resolve("copy.gguf"), "old");
      assertCutShort(() -> writer.write(copy), "the data of \"w\"");
      assertThat(copy).hasContent("old");
      assertCutShort(() -> CudaModule.load(cpu, data), "the image of a module");
    }
  }

  private static void assertCutShort(ThrowingCallable read, String named) {
    assertThatThrownBy(read)
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(named)
        .hasMessageContaining("cut short")
        .hasCauseInstanceOf(InternalError.class);
  }

  @Test
  @DisplayName("JAVA-2: a closed file says so, twice closed or not")
  void closed() {
    GgufFile file = GgufFile.open(write());
    file.close();
    file.close();
    assertThatThrownBy(() -> file.data("w")).isInstanceOf(IllegalStateException.class);
  }

  @Test
  @DisplayName("JAVA-2: data are loaded into contiguous tensors only; a copy outlives the file")
  void layouts() {
    Device cpu = Ggml.load().device("CPU");
    GgufFile file = GgufFile.open(write());
    try (Context context = Context.forTensors(3)) {
      Tensor storage = context.newTensor(Type.F32, 8, 2);
      context.allocate(cpu);
      storage.setFloats(new float[16]);
      Tensor padded = context.view2d(storage, 3, 2, 8 * Float.BYTES, 0);
      assertThatThrownBy(() -> file.load("w", padded))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("contiguous");
      assertThat(storage.getFloats()).containsOnly(0);

      byte[] bytes = file.getBytes("w");
      file.close();
      context.view2d(storage, 3, 2, 3 * Float.BYTES, 0).setBytes(bytes);
      assertThat(storage.getFloats()).startsWith(1, 2, 3, 4, 5, 6, 0);
      assertThatThrownBy(() -> file.load("w", padded)).isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> file.getBytes("w"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(".gguf is closed");
    }
  }
}
