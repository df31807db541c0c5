package org.ggmlext.natives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;

/** A cache folder that this user can write to, load libraries from and trust. */
sealed interface Owned permits UnixOwned, WindowsOwned {
  /** The folder. */
  Path root();

  /**
   * Keeps others out of a folder in this one.
   *
   * @throws IOException if it is no folder, or belongs to someone else
   */
  void makePrivate(Path folder) throws IOException;

  /** Attributes of what is made in it: nobody else may read or write it. */
  FileAttribute<?>[] forOneself();

  /**
   * Names of the attributes of a file that tell that it was changed, for {@link
   * Files#readAttributes}.
   */
  String telling();

  /** Has the names in a folder on the disk. */
  void force(Path folder) throws IOException;

  /**
   * Makes a folder, if it is not there, and tries it out.
   *
   * @throws IOException if it is read-only or noexec, or others may change what is in it
   */
  static Owned create(Path folder) throws IOException {
    if (folder.getFileSystem().supportedFileAttributeViews().contains("unix")) {
      Files.createDirectories(folder, UnixOwned.PRIVATE);
      return UnixOwned.probe(folder);
    }
    Files.createDirectories(folder);
    return WindowsOwned.probe(folder);
  }
}
