package org.ggmlext.natives;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;

/**
 * A cache folder on Windows, where files take the access list of the folder that they are made in:
 * who may change them is decided by where the folder lies, and the user's profile is closed to
 * others.
 *
 * @param root the folder
 */
record WindowsOwned(Path root) implements Owned {
  static WindowsOwned probe(Path folder) throws IOException {
    Path root = folder.toRealPath();
    Files.delete(Files.createTempFile(root, ".probe-", ""));
    return new WindowsOwned(root);
  }

  @Override
  public void makePrivate(Path folder) throws IOException {
    if (!Files.isDirectory(folder, NOFOLLOW_LINKS)) {
      throw new FileSystemException(folder.toString(), null, "is no folder");
    }
  }

  @Override
  public FileAttribute<?>[] forOneself() {
    return new FileAttribute<?>[0];
  }

  @Override
  public String telling() {
    return "size,lastModifiedTime,creationTime";
  }

  /** Folders cannot be opened there; the file system keeps a journal of their names. */
  @Override
  public void force(Path folder) {}
}
