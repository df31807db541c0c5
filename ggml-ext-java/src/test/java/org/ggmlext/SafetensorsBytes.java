package org.ggmlext;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Safetensors files by hand: what ours read and write is compared with these. */
public final class SafetensorsBytes {
  private SafetensorsBytes() {}

  /** The file of a header, padded with spaces to a multiple of eight bytes, and data. */
  public static byte[] file(String header, byte[] data) {
    byte[] text = header.getBytes(StandardCharsets.UTF_8);
    int length = (text.length + 7) / 8 * 8;
    ByteBuffer file = ByteBuffer.allocate(8 + length + data.length).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(length).put(text);
    file.put(" ".repeat(length - text.length).getBytes(StandardCharsets.US_ASCII));
    return file.put(data).array();
  }

  /** Writes a file with so many bytes of data, which take no room on the disk. */
  public static void sparse(Path path, byte[] head, long dataBytes) throws IOException {
    try (FileChannel file = FileChannel.open(path, CREATE_NEW, SPARSE, WRITE)) {
      file.write(ByteBuffer.wrap(head));
      file.write(ByteBuffer.allocate(1), head.length + dataBytes - 1);
    }
  }

  /** Bytes of these values. */
  public static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
