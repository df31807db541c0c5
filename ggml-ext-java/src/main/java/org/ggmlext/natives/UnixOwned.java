package org.ggmlext.natives;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.nio.file.StandardOpenOption.READ;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * A cache folder whose owner and mode keep others out.
 *
 * @param root the folder
 * @param user the user that owns what this process makes in it
 */
record UnixOwned(Path root, int user) implements Owned {
  static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private static final int SUPERUSER = 0;
  private static final int WRITABLE_BY_OTHERS = 0022;
  private static final int STICKY = 01000;
  private static final int ANY_FOR_OTHERS = 0077;

  /**
   * Tries a folder out.
   *
   * @throws IOException if it is read-only or noexec, or others may change what is in it
   */
  static UnixOwned probe(Path folder) throws IOException {
    Path root = folder.toRealPath();
    int user;
    Path file = Files.createTempFile(root, ".probe-", "", PRIVATE);
    try {
      user = (int) Files.getAttribute(file, "unix:uid", NOFOLLOW_LINKS);
      // On a file system that is mounted noexec, no file is executable.
      if (!Files.isExecutable(file)) {
        throw new FileSystemException(root.toString(), null, "is mounted noexec");
      }
    } finally {
      Files.delete(file);
    }
    int owner = (int) Files.getAttribute(root, "unix:uid");
    int mode = (int) Files.getAttribute(root, "unix:mode");
    if (owner != user && owner != SUPERUSER) {
      throw new FileSystemException(
          root.toString(), null, "belongs to user %d, expected %d".formatted(owner, user));
    }
    if ((mode & WRITABLE_BY_OTHERS) != 0 && (mode & STICKY) == 0) {
      throw new FileSystemException(
          root.toString(),
          null,
          "has mode %o: others than user %d may change what is in it"
              .formatted(mode & 07777, user));
    }
    return new UnixOwned(root, user);
  }

  @Override
  public void makePrivate(Path folder) throws IOException {
    if (!Files.isDirectory(folder, NOFOLLOW_LINKS)) {
      throw new FileSystemException(folder.toString(), null, "is no folder");
    }
    int owner = (int) Files.getAttribute(folder, "unix:uid", NOFOLLOW_LINKS);
    if (owner != user) {
      throw new FileSystemException(
          folder.toString(), null, "belongs to user %d, expected %d".formatted(owner, user));
    }
    int mode = (int) Files.getAttribute(folder, "unix:mode", NOFOLLOW_LINKS);
    if ((mode & ANY_FOR_OTHERS) != 0) {
      Files.setPosixFilePermissions(folder, PRIVATE.value());
    }
  }

  @Override
  public FileAttribute<?>[] forOneself() {
    return new FileAttribute<?>[] {PRIVATE};
  }

  /** The time of the last change of state is not for users to set. */
  @Override
  public String telling() {
    return "unix:size,lastModifiedTime,ctime,ino,uid,mode";
  }

  @Override
  public void force(Path folder) throws IOException {
    try (FileChannel channel = FileChannel.open(folder, READ)) {
      channel.force(true);
    }
  }
}
