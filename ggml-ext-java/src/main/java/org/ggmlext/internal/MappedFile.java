package org.ggmlext.internal;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicBoolean;
import org.ggmlext.GgmlException;

/** A file mapped into memory until it is closed. */
public final class MappedFile implements AutoCloseable {
  private final Path path;
  private final Arena arena = Arena.ofShared();
  private final AtomicBoolean closed = new AtomicBoolean();
  private final MemorySegment bytes;

  /**
   * Maps a file.
   *
   * @throws GgmlException if it cannot be read
   */
  public MappedFile(Path path) {
    this.path = path;
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
    } catch (IOException e) {
      arena.close();
      throw new GgmlException("cannot read " + path + ": " + e, e);
    }
  }

  /** Where the file is. */
  public Path path() {
    return path;
  }

  /**
   * All bytes; they must not be used after {@link #close}.
   *
   * @throws IllegalStateException if this is closed
   */
  public MemorySegment bytes() {
    if (closed.get()) {
      throw new IllegalStateException("the file " + path + " is closed");
    }
    return bytes;
  }

  /** Unmaps the file. Harmless if done before. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      arena.close();
    }
  }
}
