package org.ggmlext.internal;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.ggmlext.GgmlException;
import org.ggmlext.GgufType;
import org.ggmlext.GgufValue;
import org.ggmlext.Shape;
import org.ggmlext.StoredTensor;
import org.ggmlext.Type;

/**
 * Reads the head of a GGUF file: metadata and the list of tensors. Everything is checked, because
 * ggml's own reader ends the process over some malformed files.
 */
public final class GgufParser {
  /** "GGUF" in little-endian order. */
  public static final int MAGIC = 0x46554747;

  /** The version that is written. */
  public static final int VERSION = 3;

  /** Where the alignment of the data is told. */
  public static final String ALIGNMENT_KEY = "general.alignment";

  /** The alignment of the data if nothing is told. */
  public static final int DEFAULT_ALIGNMENT = 32;

  /** The largest alignment of the data. */
  public static final int MAX_ALIGNMENT = 1 << 30;

  private final FileReader reader;
  private final Map<String, GgufValue> metadata = new LinkedHashMap<>();
  private final Map<String, StoredTensor> tensors = new LinkedHashMap<>();
  private int version;
  private int alignment = DEFAULT_ALIGNMENT;
  private long dataBegin;

  /**
   * Reads a file.
   *
   * @throws GgmlException if it is malformed or ends too soon; the message says where
   */
  public GgufParser(MappedFile file) {
    reader = new FileReader(file.path(), file.bytes());
    int magic = reader.readInt("the magic number");
    if (magic != MAGIC) {
      throw reader.bad("this is no GGUF file: it begins with %08x, not \"GGUF\"".formatted(magic));
    }
    version = reader.readInt("the version");
    if (version != 2 && version != VERSION) {
      throw reader.bad("GGUF version %d is not known; 2 and 3 are".formatted(version));
    }
    long tensorCount = count("the number of tensors");
    long valueCount = count("the number of metadata values");
    for (long i = 0; i < valueCount; i++) {
      readEntry();
    }
    readAlignment();
    for (long i = 0; i < tensorCount; i++) {
      readTensor();
    }
    dataBegin = roundUp(reader.position(), alignment);
    for (StoredTensor tensor : tensors.values()) {
      checkRange(tensor, file.bytes().byteSize());
    }
  }

  /** The file's version. */
  public int version() {
    return version;
  }

  /** The alignment of tensors' data. */
  public int alignment() {
    return alignment;
  }

  /** Where the data begin. */
  public long dataBegin() {
    return dataBegin;
  }

  /** The metadata, in the file's order. */
  public Map<String, GgufValue> metadata() {
    return metadata;
  }

  /** The tensors, in the file's order. */
  public Map<String, StoredTensor> tensors() {
    return tensors;
  }

  private long count(String what) {
    long count = reader.readLong(what);
    // Every item takes more than one byte.
    if (count < 0 || count > reader.remaining()) {
      throw reader.bad(
          "%s is %s, more than %d bytes can hold"
              .formatted(what, Long.toUnsignedString(count), reader.remaining()));
    }
    return count;
  }

  private void readEntry() {
    String key = readString("a key");
    GgufType type = readType("the type of " + key);
    GgufValue value =
        type == GgufType.ARRAY
            ? readArray(key)
            : new GgufValue(type, readValue(type, "the value of " + key), type);
    if (metadata.putIfAbsent(key, value) != null) {
      throw reader.bad("the key \"%s\" is there twice".formatted(key));
    }
  }

  private GgufValue readArray(String key) {
    GgufType type = readType("the element type of " + key);
    if (type == GgufType.ARRAY) {
      throw reader.bad(
          "\"%s\" is an array of arrays, which GGUF readers do not know".formatted(key));
    }
    long count = count("the length of " + key);
    List<Object> values = new ArrayList<>();
    for (long i = 0; i < count; i++) {
      values.add(readValue(type, "an element of " + key));
    }
    return new GgufValue(GgufType.ARRAY, List.copyOf(values), type);
  }

  private Object readValue(GgufType type, String what) {
    return switch (type) {
      case UINT8 -> (long) Byte.toUnsignedInt(reader.readByte(what));
      case INT8 -> (long) reader.readByte(what);
      case UINT16 -> (long) Short.toUnsignedInt(reader.readShort(what));
      case INT16 -> (long) reader.readShort(what);
      case UINT32 -> Integer.toUnsignedLong(reader.readInt(what));
      case INT32 -> (long) reader.readInt(what);
      case UINT64, INT64 -> reader.readLong(what);
      case FLOAT32 -> Float.intBitsToFloat(reader.readInt(what));
      case FLOAT64 -> Double.longBitsToDouble(reader.readLong(what));
      case BOOL -> reader.readByte(what) != 0;
      case STRING -> readString(what);
      case ARRAY -> throw new AssertionError("arrays are read elsewhere");
    };
  }

  private String readString(String what) {
    return reader.readText(reader.readLong("the length of " + what), what);
  }

  private GgufType readType(String what) {
    int value = reader.readInt(what);
    if (value < 0 || value >= GgufType.values().length) {
      throw reader.bad("%s is %d, which is none of GGUF's types".formatted(what, value));
    }
    return GgufType.values()[value];
  }

  private void readAlignment() {
    GgufValue value = metadata.get(ALIGNMENT_KEY);
    if (value == null) {
      return;
    }
    if (!isAlignment(value)) {
      throw reader.bad(
          "%s is %s, not a power of two from 1 to %d as UINT32"
              .formatted(ALIGNMENT_KEY, value.value(), MAX_ALIGNMENT));
    }
    alignment = ((Long) value.value()).intValue();
  }

  /** Whether data can be aligned like this. */
  public static boolean isAlignment(GgufValue value) {
    return value.type() == GgufType.UINT32
        && value.value() instanceof Long bytes
        && bytes >= 1
        && bytes <= MAX_ALIGNMENT
        && Long.bitCount(bytes) == 1;
  }

  private void readTensor() {
    String name = readString("a tensor's name");
    int dims = reader.readInt("the dimensions of " + name);
    if (dims < 0 || dims > Shape.DIMS) {
      throw reader.bad("the tensor \"%s\" has %d dimensions, not 0 to 4".formatted(name, dims));
    }
    long[] ne = {1, 1, 1, 1};
    for (int i = 0; i < dims; i++) {
      ne[i] = reader.readLong("the shape of " + name);
    }
    int value = reader.readInt("the type of " + name);
    long offset = reader.readLong("the offset of " + name);
    StoredTensor tensor;
    try {
      Type type = Type.of(value);
      Shape shape = Shape.of(ne);
      long bytes = Math.multiplyExact(type.rowSize(shape.ne0()), shape.rows());
      List<Long> sizes = Arrays.stream(ne, 0, dims).boxed().toList().reversed();
      tensor = new StoredTensor(name, type, type.toString(), shape, sizes, offset, bytes);
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw new GgmlException(
          reader
              .bad("the tensor \"%s\" cannot be: %s".formatted(name, e.getMessage()))
              .getMessage(),
          e);
    }
    if (tensors.putIfAbsent(name, tensor) != null) {
      throw reader.bad("the tensor \"%s\" is there twice".formatted(name));
    }
  }

  private void checkRange(StoredTensor tensor, long fileSize) {
    long room = fileSize - dataBegin;
    if (tensor.offset() < 0 || tensor.offset() % alignment != 0) {
      throw reader.bad(
          "the tensor \"%s\" is at offset %s, no multiple of %d"
              .formatted(tensor.name(), Long.toUnsignedString(tensor.offset()), alignment));
    }
    if (tensor.byteSize() > room || tensor.offset() > room - tensor.byteSize()) {
      throw reader.bad(
          "the tensor \"%s\" (%d bytes at offset %d) reaches over the end of %d bytes of data"
              .formatted(tensor.name(), tensor.byteSize(), tensor.offset(), Math.max(0, room)));
    }
  }

  /** The next multiple of an alignment. */
  public static long roundUp(long value, long alignment) {
    return (value + alignment - 1) / alignment * alignment;
  }
}
