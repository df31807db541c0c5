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

  /** The JVM keeps a few elements of an int's range for itself. */
  private static final int MAX_ARRAY = Integer.MAX_VALUE - 8;

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
      return new Safetensors(file, new SafetensorsParser(file));
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
   * The bytes of a tensor, read-only; they must not be used after {@link #close}.
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
   */
  public float[] floats(String name) {
    StoredTensor tensor = tensor(name);
    long elements = tensor.shape().elements();
    if (elements > MAX_ARRAY) {
      throw new IllegalArgumentException(
          "\"%s\" has %d elements, an array at most %d".formatted(name, elements, MAX_ARRAY));
    }
    MemorySegment data = data(name);
    float[] values = new float[(int) elements];
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
              "\"%s\" is %s, expected F32, F16 or BF16".formatted(name, tensor.dtype()));
    }
    return values;
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
   * @throws IllegalArgumentException if there is no such tensor, or type or shape differ
   * @throws IllegalStateException if the file is closed, or {@code tensor} has no memory
   */
  public void load(String name, Tensor tensor) {
    StoredTensor stored = tensor(name);
    if (stored.type() != tensor.type() || !stored.shape().equals(tensor.shape())) {
      throw new IllegalArgumentException(
          "\"%s\" is %s %s, not %s".formatted(name, stored.type(), stored.shape(), tensor));
    }
    tensor.setBytes(0, data(name));
  }

  /** Unmaps the file. Harmless if done before. */
  @Override
  public void close() {
    file.close();
  }
}
