package org.ggmlext.internal;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;
import org.ggmlext.GgmlException;

/** A file mapped into memory until it is closed. Safe for use by several threads. */
public final class MappedFile implements AutoCloseable {
  private final Path path;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment bytes;

  /** Shared by reads, exclusive for closing. */
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

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
    if (!bytes.scope().isAlive()) {
      throw new IllegalStateException("the file " + path + " is closed");
    }
    return bytes;
  }

  /**
   * Reads bytes; a close by another thread takes effect after that.
   *
   * @param reader gets all bytes
   * @return what {@code reader} returned
   * @throws IllegalStateException if this is closed
   * @throws GgmlException if there are bytes which the file does not have any more
   */
  public <T> T read(Function<MemorySegment, T> reader) {
    lock.readLock().lock();
    try {
      return reader.apply(bytes());
    } catch (InternalError e) {
      throw MappedFault.whileReading(path.toString(), e);
    } finally {
      lock.readLock().unlock();
    }
  }

  /**
   * Unmaps the file, once no {@link #read} runs any more. Harmless if done before.
   *
   * @throws IllegalStateException if the bytes are in use elsewhere; the file stays open then
   */
  @Override
  public void close() {
    lock.writeLock().lock();
    try {
      if (bytes.scope().isAlive()) {
        arena.close();
      }
    } catch (IllegalStateException e) {
      throw new IllegalStateException(
          "the file %s stays open: a channel or native code reads its bytes now; close it later"
              .formatted(path),
          e);
    } finally {
      lock.writeLock().unlock();
    }
  }
}
