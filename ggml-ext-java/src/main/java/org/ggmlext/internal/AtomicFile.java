package org.ggmlext.internal;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributeView;
import java.util.UUID;
import org.ggmlext.GgmlException;

/**
 * Writes a file that is there as a whole or not at all: into a temporary file beside it, which then
 * takes its place.
 */
public final class AtomicFile {
  private static final int CHUNK = 1 << 20;

  /** As many as Linux follows. */
  private static final int MAX_LINKS = 40;

  private AtomicFile() {}

  /** What is written. */
  public interface Content {
    /** Writes it, to a buffered stream. */
    void writeTo(OutputStream out) throws IOException;
  }

  /**
   * Writes a file, in place of one that is there, whose permissions it gets. Symbolic links are
   * followed and stay. What is no regular file, such as a pipe, is written into. Whatever the
   * content throws leaves the old file as it is, and no temporary one.
   *
   * @throws GgmlException if it cannot be written
   */
  public static void write(Path path, Content content) {
    try {
      if (Files.exists(path) && !Files.isRegularFile(path)) {
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(path), CHUNK)) {
          content.writeTo(out);
        }
      } else {
        replace(followed(path.toAbsolutePath()), content);
      }
    } catch (IOException e) {
      throw new GgmlException("cannot write " + path + ": " + e, e);
    }
  }

  /** Where symbolic links lead to, be there a file or not. */
  private static Path followed(Path path) throws IOException {
    Path target = path;
    for (int links = 0; Files.isSymbolicLink(target); links++) {
      if (links == MAX_LINKS) {
        throw new FileSystemLoopException(path.toString());
      }
      target = target.resolveSibling(Files.readSymbolicLink(target));
    }
    return target;
  }

  private static void replace(Path target, Content content) throws IOException {
    if (Files.exists(target) && !Files.isWritable(target)) {
      throw new AccessDeniedException(target.toString());
    }
    Path fresh = target.resolveSibling("." + UUID.randomUUID() + ".part");
    try {
      try (FileChannel channel = FileChannel.open(fresh, CREATE_NEW, WRITE)) {
        copyPermissions(target, fresh);
        OutputStream out = new BufferedOutputStream(Channels.newOutputStream(channel), CHUNK);
        content.writeTo(out);
        out.flush();
        channel.force(true);
      }
      move(fresh, target);
    } catch (IOException | RuntimeException | Error e) {
      try {
        Files.deleteIfExists(fresh);
      } catch (IOException remains) {
        e.addSuppressed(remains);
      }
      throw e;
    }
  }

  private static void copyPermissions(Path target, Path fresh) throws IOException {
    PosixFileAttributeView to = Files.getFileAttributeView(fresh, PosixFileAttributeView.class);
    if (to != null && Files.exists(target)) {
      to.setPermissions(Files.getPosixFilePermissions(target));
    }
  }

  private static void move(Path fresh, Path target) throws IOException {
    try {
      Files.move(fresh, target, ATOMIC_MOVE, REPLACE_EXISTING);
    } catch (AtomicMoveNotSupportedException e) {
      Files.move(fresh, target, REPLACE_EXISTING);
    }
  }
}
