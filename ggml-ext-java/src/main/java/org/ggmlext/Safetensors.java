package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import org.ggmlext.internal.Bfloat16;
import org.ggmlext.internal.MappedFile;
import org.ggmlext.internal.SafetensorsParser;

/**
 * A safetensors model file, mapped into memory. Its header is read and checked when it is opened;
 * data are read when they are used.
 *
 * <p>The format writes shapes with the slowest dimension first; here they are in ggml's order,
 * reversed; {@link StoredTensor#sizes} has them as they are written.
 *
 * <p>Safe for use by several threads.
 */
public final class Safetensors implements AutoCloseable {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final MappedFile file;
  private final SafetensorsParser head;

  private Safetensors(MappedFile file, SafetensorsParser head) {
    this.file = file;
    this.head = head;
  }

  /**
   * Opens a file.
   *
   * @throws GgmlException if it cannot be read, or is malformed: a header that is larger than the
   *     file or 100 MB, that is no JSON, tensors that overlap, leave gaps or reach over the end, a
   *     type that the format does not have
   */
  public static Safetensors open(Path path) {
    MappedFile file = new MappedFile(path);
    try {
      return new Safetensors(file, file.read(_ -> new SafetensorsParser(file)));
    } catch (RuntimeException | Error e) {
      file.close();
      throw e;
    }
  }

  /** Where the file is. */
  public Path path() {
    return file.path();
  }

  /** What the file says about itself. */
  public Map<String, String> metadata() {
    return Collections.unmodifiableMap(head.metadata());
  }

  /** The tensors, in the header's order. */
  public Collection<StoredTensor> tensors() {
    return Collections.unmodifiableCollection(head.tensors().values());
  }

  /**
   * The tensor of a name.
   *
   * @throws IllegalArgumentException if there is none
   */
  public StoredTensor tensor(String name) {
    StoredTensor tensor = head.tensors().get(name);
    if (tensor == null) {
      throw new IllegalArgumentException(file.path() + " has no tensor \"" + name + "\"");
    }
    return tensor;
  }

  /** Whether there is a tensor of this name. */
  public boolean contains(String name) {
    return head.tensors().containsKey(name);
  }

  /**
   * The bytes of a tensor where they are mapped, read-only. They must not be used after {@link
   * #close}: that throws an {@link IllegalStateException}. Where the file was cut short after it
   * was opened, reading what it has lost throws an {@link InternalError}; native code that reads it
   * is ended by the system. {@link #getBytes} makes a copy, without either.
   *
   * @throws IllegalArgumentException if there is no such tensor
   * @throws IllegalStateException if the file is closed
   */
  public MemorySegment data(String name) {
    StoredTensor tensor = tensor(name);
    return file.bytes().asSlice(head.dataBegin() + tensor.offset(), tensor.byteSize());
  }

  /**
   * The values of an F32, F16 or BF16 tensor, which all are floats exactly.
   *
   * @return in the file's order
   * @throws IllegalArgumentException if there is no such tensor, it has another type, or more
   *     elements than an array can have
   * @throws IllegalStateException if the file is closed
   * @throws GgmlException if they cannot be read any more, since the file was cut short after it
   *     was opened
   */
  public float[] floats(String name) {
    StoredTensor tensor = tensor(name);
    long elements = tensor.shape().elements();
    if (elements > TensorData.MAX_ARRAY) {
      throw new IllegalArgumentException(
          "\"%s\" has %d elements, an array at most %d"
              .formatted(name, elements, TensorData.MAX_ARRAY));
    }
    long begin = head.dataBegin() + tensor.offset();
    return file.read(bytes -> floats(tensor, bytes.asSlice(begin, tensor.byteSize())));
  }

  private static float[] floats(StoredTensor tensor, MemorySegment data) {
    float[] values = new float[(int) tensor.shape().elements()];
    switch (tensor.type()) {
      case F32 -> MemorySegment.copy(data, FLOAT, 0, values, 0, values.length);
      case F16 -> {
        for (int i = 0; i < values.length; i++) {
          values[i] = Float.float16ToFloat(data.getAtIndex(SHORT, i));
        }
      }
      case BF16 -> {
        for (int i = 0; i < values.length; i++) {
          values[i] = Bfloat16.toFloat(data.getAtIndex(SHORT, i));
        }
      }
      default ->
          throw new IllegalArgumentException(
              "\"%s\" is %s, expected F32, F16 or BF16".formatted(tensor.name(), tensor.dtype()));
    }
    return values;
  }

  /**
   * A copy of the bytes of a tensor.
   *
   * @throws IllegalArgumentException if there is no such tensor, or it has more bytes than an array
   *     holds
   * @throws IllegalStateException if the file is closed
   * @throws GgmlException if they cannot be read any more, since the file was cut short after it
   *     was opened
   */
  public byte[] getBytes(String name) {
    StoredTensor tensor = tensor(name);
    return TensorData.copy(file, head.dataBegin() + tensor.offset(), tensor);
  }

  /**
   * Makes a tensor as the file's one of this name, without data. Give it memory ({@link
   * Context#allocate}), then call {@link #load}.
   *
   * @throws IllegalArgumentException if there is no such tensor
   */
  public Tensor newTensor(Context context, String name) {
    StoredTensor stored = tensor(name);
    return context.newTensor(stored.type(), stored.shape());
  }

  /**
   * Copies the data of the file's tensor of this name.
   *
   * @throws IllegalArgumentException if there is no such tensor, type or shape differ, or {@code
   *     tensor} is not contiguous
   * @throws IllegalStateException if the file is closed, or {@code tensor} has no memory
   * @throws GgmlException if the data cannot be read any more, since the file was cut short after
   *     it was opened; {@code tensor} holds a part of them then
   */
  public void load(String name, Tensor tensor) {
    StoredTensor stored = tensor(name);
    TensorData.load(file, head.dataBegin() + stored.offset(), stored, tensor);
  }

  /**
   * Unmaps the file, once no other thread loads from it any more. Harmless if done before.
   *
   * @throws IllegalStateException if a channel or native code reads {@link #data} now; the file
   *     stays open then, and may be closed again later
   */
  @Override
  public void close() {
    file.close();
  }
}
