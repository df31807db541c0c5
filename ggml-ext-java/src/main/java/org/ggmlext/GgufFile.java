package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.ggmlext.internal.GgufParser;
import org.ggmlext.internal.MappedFile;
import org.ggmlext.internal.Native;
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
      return new GgufFile(file, file.read(_ -> new GgufParser(file)));
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
   * Context#allocate}), then call {@link #load}. It is named as in the file; of a name of more than
   * 63 bytes in UTF-8, which only other writers' files have, it keeps the characters that fit, and
   * none from a zero character on.
   *
   * @throws IllegalArgumentException if there is no such tensor
   */
  public Tensor newTensor(Context context, String name) {
    StoredTensor stored = tensor(name);
    return context.newTensor(stored.type(), stored.shape()).name(fitting(name));
  }

  private static String fitting(String name) {
    ByteBuffer bytes = ByteBuffer.allocate(Native.MAX_NAME - 1);
    int zero = name.indexOf('\0');
    CharBuffer chars = CharBuffer.wrap(zero < 0 ? name : name.substring(0, zero));
    // Stops in front of the character that does not fit.
    StandardCharsets.UTF_8.newEncoder().encode(chars, bytes, true);
    return name.substring(0, chars.position());
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
