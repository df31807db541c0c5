package org.ggmlext.internal;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.ggmlext.GgmlException;

/**
 * Reads little-endian values of a mapped file one after the other, and says where it ends too soon.
 */
public final class FileReader {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final Path file;
  private final MemorySegment bytes;
  private long position;

  /** A reader at the begin of a file's bytes. */
  public FileReader(Path file, MemorySegment bytes) {
    this.file = file;
    this.bytes = bytes;
  }

  /** Where the next value begins. */
  public long position() {
    return position;
  }

  /** Bytes after the position. */
  public long remaining() {
    return bytes.byteSize() - position;
  }

  /** The next byte. */
  public byte readByte(String what) {
    return bytes.get(ValueLayout.JAVA_BYTE, take(1, what));
  }

  /** The next two bytes. */
  public short readShort(String what) {
    return bytes.get(SHORT, take(Short.BYTES, what));
  }

  /** The next four bytes. */
  public int readInt(String what) {
    return bytes.get(INT, take(Integer.BYTES, what));
  }

  /** The next eight bytes. */
  public long readLong(String what) {
    return bytes.get(LONG, take(Long.BYTES, what));
  }

  /** The next bytes as UTF-8. */
  public String readText(long length, String what) {
    long at = take(length, what);
    if (length > Integer.MAX_VALUE) {
      throw bad("%s has %d bytes, more than a string can have".formatted(what, length));
    }
    ByteBuffer text = bytes.asSlice(at, length).asByteBuffer();
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
    } catch (CharacterCodingException e) {
      throw new GgmlException("%s: %s at byte %d is no UTF-8".formatted(file, what, at), e);
    }
  }

  /** What a malformed file throws. */
  public GgmlException bad(String message) {
    return new GgmlException(file + ": " + message);
  }

  private long take(long length, String what) {
    if (length < 0 || length > remaining()) {
      throw bad(
          "the file ends at byte %d, within %s, which needs %s bytes from byte %d"
              .formatted(bytes.byteSize(), what, Long.toUnsignedString(length), position));
    }
    long at = position;
    position += length;
    return at;
  }
}
