package org.ggmlext;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.ggmlext.internal.AtomicFile;
import org.ggmlext.internal.GgufParser;
import org.ggmlext.internal.MappedFault;
import org.ggmlext.internal.Native;

/**
 * Writes GGUF files of version 3. Values and tensors come in the order in which they were added.
 *
 * <p>Not safe for use by several threads.
 */
public final class GgufWriter {
  private static final int CHUNK = 1 << 20;

  private final Map<String, GgufValue> metadata = new LinkedHashMap<>();
  private final Map<String, Entry> tensors = new LinkedHashMap<>();

  private record Entry(Type type, Shape shape, MemorySegment data) {}

  /**
   * Sets a value.
   *
   * @return this
   * @throws IllegalArgumentException if the key is empty, or the alignment is set to what is no
   *     power of two up to 2<sup>30</sup> as UINT32
   */
  public GgufWriter set(String key, GgufValue value) {
    if (key.isEmpty()) {
      throw new IllegalArgumentException("a key has at least one character");
    }
    if (key.equals(GgufParser.ALIGNMENT_KEY) && !GgufParser.isAlignment(value)) {
      throw new IllegalArgumentException(
          "%s must be a power of two from 1 to %d as UINT32, not %s as %s"
              .formatted(key, GgufParser.MAX_ALIGNMENT, value.value(), value.type()));
    }
    metadata.put(key, value);
    return this;
  }

  /** Sets a string. */
  public GgufWriter set(String key, String value) {
    return set(key, GgufValue.string(value));
  }

  /**
   * Adds a tensor with data that stay as they are until {@link #write}.
   *
   * @return this
   * @throws IllegalArgumentException if the name is taken or has more than 63 bytes in UTF-8, or
   *     the bytes are not those of type and shape
   */
  public GgufWriter add(String name, Type type, Shape shape, MemorySegment data) {
    int nameBytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (nameBytes >= Native.MAX_NAME) {
      throw new IllegalArgumentException(
          "a tensor's name has at most %d bytes, as ggml reads it; \"%s\" has %d"
              .formatted(Native.MAX_NAME - 1, name, nameBytes));
    }
    long bytes;
    try {
      bytes = Math.multiplyExact(type.rowSize(shape.ne0()), shape.rows());
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "\"%s\" %s %s has more bytes than a long can count".formatted(name, type, shape), e);
    }
    if (data.byteSize() != bytes) {
      throw new IllegalArgumentException(
          "\"%s\" %s %s has %d bytes, %d are given"
              .formatted(name, type, shape, bytes, data.byteSize()));
    }
    if (tensors.putIfAbsent(name, new Entry(type, shape, data)) != null) {
      throw new IllegalArgumentException("there is a tensor \"" + name + "\" already");
    }
    return this;
  }

  /**
   * Adds a copy of a tensor's data.
   *
   * @return this
   * @throws IllegalArgumentException if the name is taken or has more than 63 bytes in UTF-8, or
   *     the tensor is not contiguous
   */
  public GgufWriter add(String name, Tensor tensor) {
    if (!tensor.isContiguous()) {
      throw new IllegalArgumentException("only a contiguous tensor can be written, not " + tensor);
    }
    return add(name, tensor.type(), tensor.shape(), MemorySegment.ofArray(tensor.getBytes()));
  }

  /**
   * Writes the file, in place of one that is there. It is written into a temporary file beside it,
   * {@code .*.part}, which takes its place when all is written; if anything fails, the old file
   * stays as it was. A symbolic link stays, and the file is written that it leads to.
   *
   * @throws GgmlException if it cannot be written, or data are those of a mapped file that was cut
   *     short
   * @throws IllegalStateException if data are no longer accessible
   */
  public void write(Path path) {
    AtomicFile.write(path, this::write);
  }

  private void write(OutputStream stream) throws IOException {
    Out out = new Out(stream);
    out.int32(GgufParser.MAGIC);
    out.int32(GgufParser.VERSION);
    out.int64(tensors.size());
    out.int64(metadata.size());
    for (Map.Entry<String, GgufValue> entry : metadata.entrySet()) {
      out.string(entry.getKey());
      out.int32(entry.getValue().type().value());
      value(out, entry.getValue());
    }
    GgufValue told = metadata.get(GgufParser.ALIGNMENT_KEY);
    long alignment = told == null ? GgufParser.DEFAULT_ALIGNMENT : (Long) told.value();
    long offset = 0;
    for (Map.Entry<String, Entry> entry : tensors.entrySet()) {
      Shape shape = entry.getValue().shape();
      out.string(entry.getKey());
      out.int32(shape.dims());
      for (int i = 0; i < shape.dims(); i++) {
        out.int64(shape.ne(i));
      }
      out.int32(entry.getValue().type().value());
      out.int64(offset);
      offset = GgufParser.roundUp(offset + entry.getValue().data().byteSize(), alignment);
    }
    for (Map.Entry<String, Entry> entry : tensors.entrySet()) {
      out.pad(alignment);
      try {
        out.bytes(entry.getValue().data());
      } catch (InternalError e) {
        throw MappedFault.whileReading("the file with the data of \"" + entry.getKey() + "\"", e);
      }
    }
    out.pad(alignment);
  }

  private static void value(Out out, GgufValue value) throws IOException {
    if (value.type() != GgufType.ARRAY) {
      scalar(out, value.type(), value.value());
      return;
    }
    List<?> list = (List<?>) value.value();
    out.int32(value.elementType().value());
    out.int64(list.size());
    for (Object element : list) {
      scalar(out, value.elementType(), element);
    }
  }

  private static void scalar(Out out, GgufType type, Object value) throws IOException {
    switch (type) {
      case UINT8, INT8 -> out.int8(((Long) value).byteValue());
      case UINT16, INT16 -> out.int16(((Long) value).shortValue());
      case UINT32, INT32 -> out.int32(((Long) value).intValue());
      case UINT64, INT64 -> out.int64((Long) value);
      case FLOAT32 -> out.int32(Float.floatToRawIntBits((Float) value));
      case FLOAT64 -> out.int64(Double.doubleToRawLongBits((Double) value));
      case BOOL -> out.int8((byte) ((Boolean) value ? 1 : 0));
      case STRING -> out.string((String) value);
      case ARRAY -> throw new IllegalArgumentException("GGUF has no arrays of arrays");
    }
  }

  /** Little-endian output that knows its position. */
  private static final class Out {
    private final OutputStream stream;
    private final ByteBuffer buffer = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    private long position;

    Out(OutputStream stream) {
      this.stream = stream;
    }

    void int8(byte value) throws IOException {
      put(buffer.clear().put(value));
    }

    void int16(short value) throws IOException {
      put(buffer.clear().putShort(value));
    }

    void int32(int value) throws IOException {
      put(buffer.clear().putInt(value));
    }

    void int64(long value) throws IOException {
      put(buffer.clear().putLong(value));
    }

    void string(String value) throws IOException {
      byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
      int64(bytes.length);
      stream.write(bytes);
      position += bytes.length;
    }

    void bytes(MemorySegment data) throws IOException {
      byte[] chunk = new byte[(int) Math.min(CHUNK, data.byteSize())];
      for (long at = 0; at < data.byteSize(); at += chunk.length) {
        int length = (int) Math.min(chunk.length, data.byteSize() - at);
        MemorySegment.copy(data, ValueLayout.JAVA_BYTE, at, chunk, 0, length);
        stream.write(chunk, 0, length);
      }
      position += data.byteSize();
    }

    void pad(long alignment) throws IOException {
      while (position % alignment != 0) {
        int8((byte) 0);
      }
    }

    private void put(ByteBuffer filled) throws IOException {
      stream.write(filled.array(), 0, filled.position());
      position += filled.position();
    }
  }
}
