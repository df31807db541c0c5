package org.ggmlext;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.ggmlext.internal.AtomicFile;
import org.ggmlext.internal.MappedFault;
import org.ggmlext.internal.SafetensorsDtype;

/**
 * Writes safetensors files. Tensors with large elements come first, so that each begins at a
 * multiple of its elements' size; else they keep the order in which they were added.
 *
 * <p>Not safe for use by several threads.
 */
public final class SafetensorsWriter {
  private static final JsonFactory JSON = new JsonFactory();
  private static final int CHUNK = 1 << 20;
  private static final int ALIGNMENT = 8;

  private final Map<String, String> metadata = new LinkedHashMap<>();
  private final Map<String, Entry> tensors = new LinkedHashMap<>();

  private record Entry(String name, SafetensorsDtype dtype, List<Long> sizes, MemorySegment data) {
    int bits() {
      return dtype.bits();
    }
  }

  /**
   * Sets what the file says about itself.
   *
   * @return this
   */
  public SafetensorsWriter metadata(String key, String value) {
    metadata.put(key, value);
    return this;
  }

  /**
   * Adds a tensor with data that stay as they are until {@link #write}.
   *
   * @param shape in ggml's order; the file gets it reversed, without trailing sizes of 1 (the
   *     method that takes a dtype writes sizes as they are)
   * @return this
   * @throws IllegalArgumentException if the name is taken, the type is quantised, or the bytes are
   *     not those of type and shape
   */
  public SafetensorsWriter add(String name, Type type, Shape shape, MemorySegment data) {
    SafetensorsDtype dtype = SafetensorsDtype.find(type.name());
    if (dtype == null) {
      throw new IllegalArgumentException(
          "\"%s\" is %s; a safetensors file has F64, F32, F16, BF16, I64 to I8"
              .formatted(name, type));
    }
    List<Long> sizes = IntStream.range(0, shape.dims()).mapToObj(shape::ne).toList().reversed();
    return add(new Entry(name, dtype, sizes, data));
  }

  /**
   * Adds a tensor of any type that the format has, with data that stay as they are until {@link
   * #write}.
   *
   * @param dtype what the format calls the type, such as {@code F32}, {@code U8}, {@code F8_E4M3}
   * @param sizes as the file gets them, the slowest dimension first; none for a single value
   * @return this
   * @throws IllegalArgumentException if the name is taken, the format has no such type, or the
   *     bytes are not those of type and sizes
   */
  public SafetensorsWriter add(String name, String dtype, List<Long> sizes, MemorySegment data) {
    SafetensorsDtype known = SafetensorsDtype.find(dtype);
    if (known == null) {
      throw new IllegalArgumentException(
          "\"%s\" is %s; a safetensors file has %s"
              .formatted(name, dtype, SafetensorsDtype.names()));
    }
    return add(new Entry(name, known, List.copyOf(sizes), data));
  }

  /**
   * Adds a tensor of another file with the type and the sizes that it has there.
   *
   * @param data its bytes, which stay as they are until {@link #write}
   * @return this
   * @throws IllegalArgumentException if the name is taken, a safetensors file has no such type, or
   *     the bytes are not those of type and sizes
   */
  public SafetensorsWriter add(StoredTensor tensor, MemorySegment data) {
    return add(tensor.name(), tensor.dtype(), tensor.sizes(), data);
  }

  /**
   * Adds a copy of a tensor's data.
   *
   * @return this
   * @throws IllegalArgumentException if the name is taken, the type is quantised, or the tensor is
   *     not contiguous
   */
  public SafetensorsWriter add(String name, Tensor tensor) {
    if (!tensor.isContiguous()) {
      throw new IllegalArgumentException("only a contiguous tensor can be written, not " + tensor);
    }
    return add(name, tensor.type(), tensor.shape(), MemorySegment.ofArray(tensor.getBytes()));
  }

  /**
   * Adds bytes, such as those of a text, as a tensor of type U8.
   *
   * @return this
   * @throws IllegalArgumentException if the name is taken
   */
  public SafetensorsWriter add(String name, byte... bytes) {
    return add(
        new Entry(
            name,
            SafetensorsDtype.U8,
            List.of((long) bytes.length),
            MemorySegment.ofArray(bytes.clone())));
  }

  private SafetensorsWriter add(Entry entry) {
    long bytes = entry.dtype().byteSize(entry.sizes());
    if (entry.data().byteSize() != bytes) {
      throw new IllegalArgumentException(
          "\"%s\" %s %s has %d bytes, %d are given"
              .formatted(
                  entry.name(), entry.dtype(), entry.sizes(), bytes, entry.data().byteSize()));
    }
    if (entry.name().equals("__metadata__") || tensors.containsKey(entry.name())) {
      throw new IllegalArgumentException("the name \"" + entry.name() + "\" is taken");
    }
    tensors.put(entry.name(), entry);
    return this;
  }

  /**
   * Writes the file, in place of one that is there. It is written into a temporary file beside it,
   * {@code .*.part}, which takes its place when all is written; if anything fails, the old file
   * stays as it was. So data may come from the file that is replaced (Windows refuses that). A
   * symbolic link stays, and the file is written that it leads to.
   *
   * @throws GgmlException if it cannot be written, or data are those of a mapped file that was cut
   *     short
   * @throws IllegalStateException if data are no longer accessible
   */
  public void write(Path path) {
    List<Entry> ordered =
        tensors.values().stream().sorted(Comparator.comparingInt(Entry::bits).reversed()).toList();
    AtomicFile.write(path, out -> write(out, ordered));
  }

  private void write(OutputStream out, List<Entry> ordered) throws IOException {
    byte[] header = header(ordered);
    int padding = -header.length & (ALIGNMENT - 1);
    out.write(
        ByteBuffer.allocate(Long.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(header.length + padding)
            .array());
    out.write(header);
    out.write(" ".repeat(padding).getBytes(StandardCharsets.US_ASCII));
    for (Entry entry : ordered) {
      try {
        write(out, entry.data());
      } catch (InternalError e) {
        throw MappedFault.whileReading("the file with the data of \"" + entry.name() + "\"", e);
      }
    }
  }

  private byte[] header(List<Entry> ordered) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (JsonGenerator json = JSON.createGenerator(bytes)) {
      json.writeStartObject();
      if (!metadata.isEmpty()) {
        json.writeObjectFieldStart("__metadata__");
        for (Map.Entry<String, String> entry : metadata.entrySet()) {
          json.writeStringField(entry.getKey(), entry.getValue());
        }
        json.writeEndObject();
      }
      long offset = 0;
      for (Entry entry : ordered) {
        json.writeObjectFieldStart(entry.name());
        json.writeStringField("dtype", entry.dtype().name());
        json.writeArrayFieldStart("shape");
        for (long size : entry.sizes()) {
          json.writeNumber(size);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("data_offsets");
        json.writeNumber(offset);
        offset += entry.data().byteSize();
        json.writeNumber(offset);
        json.writeEndArray();
        json.writeEndObject();
      }
      json.writeEndObject();
    }
    return bytes.toByteArray();
  }

  private static void write(OutputStream out, MemorySegment data) throws IOException {
    byte[] chunk = new byte[(int) Math.min(CHUNK, data.byteSize())];
    for (long at = 0; at < data.byteSize(); at += chunk.length) {
      int length = (int) Math.min(chunk.length, data.byteSize() - at);
      MemorySegment.copy(data, ValueLayout.JAVA_BYTE, at, chunk, 0, length);
      out.write(chunk, 0, length);
    }
  }
}
