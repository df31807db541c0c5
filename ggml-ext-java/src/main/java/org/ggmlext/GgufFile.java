package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.ggmlext.internal.GgufParser;
import org.ggmlext.internal.MappedFile;
import org.jspecify.annotations.Nullable;

/**
 * A GGUF model file, mapped into memory. Its head is read and checked when it is opened; data are
 * read when they are used.
 *
 * <p>Safe for use by several threads.
 */
public final class GgufFile implements AutoCloseable {
  private final MappedFile file;
  private final GgufParser head;

  private GgufFile(MappedFile file, GgufParser head) {
    this.file = file;
    this.head = head;
  }

  /**
   * Opens a file.
   *
   * @throws GgmlException if it cannot be read, is no GGUF file of version 2 or 3, or is malformed
   */
  public static GgufFile open(Path path) {
    MappedFile file = new MappedFile(path);
    try {
      return new GgufFile(file, new GgufParser(file));
    } catch (RuntimeException | Error e) {
      file.close();
      throw e;
    }
  }

  /** The version of the format. */
  public int version() {
    return head.version();
  }

  /** Bytes that tensors' data are aligned to. */
  public int alignment() {
    return head.alignment();
  }

  /** All metadata, in the file's order. */
  public Map<String, GgufValue> metadata() {
    return Collections.unmodifiableMap(head.metadata());
  }

  /** The string of a key; empty if there is no such key. */
  public Optional<String> string(String key) {
    return get(key, String.class);
  }

  /** The integer of a key, whatever its size; empty if there is no such key. */
  public Optional<Long> integer(String key) {
    return get(key, Long.class);
  }

  /** The number of a key, FLOAT32 or FLOAT64; empty if there is no such key. */
  public Optional<Double> number(String key) {
    return get(key, Number.class).map(Number::doubleValue);
  }

  /** The truth value of a key; empty if there is no such key. */
  public Optional<Boolean> bool(String key) {
    return get(key, Boolean.class);
  }

  /** The array of strings of a key; empty if there is no such key. */
  public Optional<List<String>> strings(String key) {
    return array(key, String.class);
  }

  /** The array of integers of a key, whatever their size; empty if there is no such key. */
  public Optional<List<Long>> integers(String key) {
    return array(key, Long.class);
  }

  /** The array of floats of a key; empty if there is no such key. */
  public Optional<List<Float>> floats(String key) {
    return array(key, Float.class);
  }

  private <T> Optional<T> get(String key, Class<T> as) {
    GgufValue value = head.metadata().get(key);
    if (value == null) {
      return Optional.empty();
    }
    if (!as.isInstance(value.value())) {
      throw wrong(key, value, as);
    }
    return Optional.of(as.cast(value.value()));
  }

  private <T> Optional<List<T>> array(String key, Class<T> as) {
    GgufValue value = head.metadata().get(key);
    if (value == null) {
      return Optional.empty();
    }
    if (!(value.value() instanceof List<?> list) || !list.stream().allMatch(as::isInstance)) {
      throw wrong(key, value, as);
    }
    return Optional.of(list.stream().<T>map(as::cast).toList());
  }

  private GgmlException wrong(String key, GgufValue value, Class<?> as) {
    String is =
        value.type() == GgufType.ARRAY ? "an array of " + value.elementType() : "" + value.type();
    return new GgmlException(
        "%s: \"%s\" is %s and cannot be read as %s"
            .formatted(file.path(), key, is, as.getSimpleName()));
  }

  /** The tensors, in the file's order. */
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

  /** The tensor of a name; null if there is none. */
  public @Nullable StoredTensor find(String name) {
    return head.tensors().get(name);
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
   * Makes a tensor as the file's one of this name, without data. Give it memory ({@link
   * Context#allocate}), then call {@link #load}.
   *
   * @throws IllegalArgumentException if there is no such tensor
   */
  public Tensor newTensor(Context context, String name) {
    StoredTensor stored = tensor(name);
    Tensor tensor = context.newTensor(stored.type(), stored.shape());
    return name.length() < 64 ? tensor.name(name) : tensor;
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
