package org.ggmlext.natives;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The libraries of one manifest as files. Several processes may do the same at once, without locks:
 * what appears under a name appears whole, and each of them would put the same there.
 */
final class UnpackedFolder {
  private static final Logger LOG = LoggerFactory.getLogger("org.ggmlext.natives");

  /** Holds {@link #state} as it was when the hashes were last checked. */
  private static final String CHECKED = "checked";

  private final Owned cache;
  private final Path folder;
  private final Manifest manifest;
  private final ResourceFolder source;

  UnpackedFolder(Owned cache, String name, Manifest manifest, ResourceFolder source) {
    this.cache = cache;
    this.folder = cache.root().resolve(name);
    this.manifest = manifest;
    this.source = source;
  }

  /**
   * Unpacks what is not there, and replaces what is not as it should be.
   *
   * @throws IOException if this cache folder cannot be used
   * @throws GgmlException if the jar is damaged
   */
  Path ready() throws IOException {
    if (!Files.exists(folder, NOFOLLOW_LINKS)) {
      unpackAll();
    }
    cache.makePrivate(folder);
    removeStrangers();
    if (!state(folder).equals(checkedState())) {
      replaceDamaged();
    }
    return folder;
  }

  private void unpackAll() throws IOException {
    Path fresh = unpack(manifest.hashes().keySet());
    try {
      writeChecked(fresh, state(fresh));
      cache.force(fresh);
      Files.move(fresh, folder, ATOMIC_MOVE);
      cache.force(cache.root());
    } catch (FileSystemException e) {
      // Another process was faster; its files are checked as any that were there before.
      if (!Files.isDirectory(folder, NOFOLLOW_LINKS)) {
        throw e;
      }
    } finally {
      delete(fresh);
    }
  }

  private void replaceDamaged() throws IOException {
    String before = state(folder);
    List<String> damaged = new ArrayList<>();
    for (Map.Entry<String, String> entry : manifest.hashes().entrySet()) {
      Path file = folder.resolve(entry.getKey());
      if (!Files.isRegularFile(file, NOFOLLOW_LINKS) || !Sha256.of(file).equals(entry.getValue())) {
        damaged.add(entry.getKey());
      }
    }
    if (damaged.isEmpty()) {
      replaceChecked(before);
      return;
    }
    LOG.warn("{} in {} is missing or was changed, and is replaced", damaged, folder);
    Path fresh = unpack(damaged);
    try {
      for (String name : damaged) {
        Files.move(fresh.resolve(name), folder.resolve(name), ATOMIC_MOVE);
      }
      cache.force(folder);
    } finally {
      delete(fresh);
    }
    // Without a note of the state, the next start checks the hashes once more.
    Files.deleteIfExists(folder.resolve(CHECKED));
  }

  /** ggml would load any backend that it finds beside its own. */
  private void removeStrangers() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        String name = String.valueOf(file.getFileName());
        boolean library = name.startsWith("lib") || name.endsWith(".dll");
        if (library && !manifest.hashes().containsKey(name)) {
          LOG.warn("{} is none of the unpacked libraries, and is deleted", file);
          Files.deleteIfExists(file);
        }
      }
    }
  }

  /** Unpacks some files to a new folder beside the final one. */
  private Path unpack(Collection<String> names) throws IOException {
    Path fresh = Files.createTempDirectory(cache.root(), ".unpack-", cache.forOneself());
    try {
      for (String name : names) {
        unpack(name, fresh.resolve(name));
      }
      return fresh;
    } catch (IOException | RuntimeException e) {
      delete(fresh);
      throw e;
    }
  }

  private void unpack(String name, Path file) throws IOException {
    String found;
    try (InputStream in = source.open(name)) {
      if (in == null) {
        throw new GgmlException(
            "%s lists %s, but that is not beside it".formatted(manifest.origin(), name));
      }
      try (FileChannel channel =
          FileChannel.open(file, Set.of(CREATE_NEW, WRITE), cache.forOneself())) {
        OutputStream out = Channels.newOutputStream(channel);
        found = Sha256.copy(in, out);
        channel.force(true);
      }
    }
    String expected = manifest.hashes().get(name);
    if (!found.equals(expected)) {
      throw new GgmlException(
          "%s is damaged: %s has SHA-256 %s, expected %s"
              .formatted(manifest.origin(), name, found, expected));
    }
  }

  /**
   * What the file system says about the files. It does not stay the same when one is written, cut
   * or replaced.
   */
  private String state(Path where) throws IOException {
    StringBuilder state = new StringBuilder();
    for (String name : manifest.hashes().keySet()) {
      Path file = where.resolve(name);
      state
          .append(name)
          .append(' ')
          .append(
              Files.exists(file, NOFOLLOW_LINKS)
                  ? new TreeMap<>(Files.readAttributes(file, cache.telling(), NOFOLLOW_LINKS))
                  : "missing")
          .append('\n');
    }
    return state.toString();
  }

  private String checkedState() throws IOException {
    Path checked = folder.resolve(CHECKED);
    return Files.isRegularFile(checked, NOFOLLOW_LINKS) ? Files.readString(checked) : "";
  }

  private void replaceChecked(String state) throws IOException {
    Path fresh = Files.createTempDirectory(cache.root(), ".unpack-", cache.forOneself());
    try {
      writeChecked(fresh, state);
      Files.move(fresh.resolve(CHECKED), folder.resolve(CHECKED), ATOMIC_MOVE);
    } finally {
      delete(fresh);
    }
  }

  private static void writeChecked(Path where, String state) throws IOException {
    Files.writeString(where.resolve(CHECKED), state, CREATE_NEW, WRITE);
  }

  private static void delete(Path where) throws IOException {
    if (!Files.exists(where, NOFOLLOW_LINKS)) {
      return;
    }
    try (Stream<Path> files = Files.list(where)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Files.deleteIfExists(file);
      }
    }
    Files.delete(where);
  }
}
