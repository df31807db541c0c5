package org.ggmlext.natives;

import java.io.File;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.ggmlext.GgmlException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folders that unpacked libraries may go to, best first. The first that can be used counts; why
 * one cannot be used is logged at level debug.
 */
record NativeCache(List<Candidate> candidates) {
  private static final Logger LOG = LoggerFactory.getLogger("org.ggmlext.natives");

  /** The system property that names the cache folder. */
  static final String PROPERTY = "ggml.ext.cache";

  /** The environment variable that names the cache folder. */
  static final String ENVIRONMENT = "GGML_EXT_CACHE";

  /**
   * A folder that may be used.
   *
   * @param origin who names it, for messages
   * @param folder absolute, or what is no path on this machine: with letters that the locale does
   *     not have, such as all but ASCII's where it is C
   */
  record Candidate(String origin, String folder) {
    Path path() throws IOException {
      try {
        return Path.of(folder);
      } catch (InvalidPathException e) {
        throw new IOException(e.getReason(), e);
      }
    }
  }

  NativeCache {
    candidates = List.copyOf(candidates);
  }

  /**
   * The folders that this process's settings name.
   *
   * @param properties system properties by name
   * @param environment environment variables by name
   */
  static List<Candidate> candidates(Lookup properties, Lookup environment) {
    List<Candidate> found = new ArrayList<>();
    add(found, "system property " + PROPERTY, properties.get(PROPERTY), folder -> folder);
    add(
        found,
        "environment variable " + ENVIRONMENT,
        environment.get(ENVIRONMENT),
        folder -> folder);
    String local = environment.get("LOCALAPPDATA"); // Windows sets it
    if (local != null) {
      add(found, "environment variable LOCALAPPDATA", local, folder -> folder.resolve("ggml-ext"));
    }
    String xdg = environment.get("XDG_CACHE_HOME");
    // The XDG specification has relative paths ignored.
    if (xdg != null && xdg.startsWith("/")) {
      add(found, "environment variable XDG_CACHE_HOME", xdg, folder -> folder.resolve("ggml-ext"));
    } else {
      String home = properties.get("user.home");
      // Without an entry in the user database, Java's home folder is "?".
      if (home != null && new File(home).isAbsolute()) {
        add(found, "the home folder", home, folder -> folder.resolve(".cache/ggml-ext"));
      }
    }
    add(
        found,
        "system property java.io.tmpdir",
        properties.get("java.io.tmpdir"),
        folder -> folder.resolve("ggml-ext-" + properties.get("user.name")));
    return found;
  }

  /** A set of settings. */
  interface Lookup {
    @Nullable String get(String name);
  }

  private static void add(
      List<Candidate> candidates,
      String origin,
      @Nullable String folder,
      UnaryOperator<Path> place) {
    if (folder == null || folder.isBlank()) {
      return;
    }
    String absolute;
    try {
      absolute = place.apply(Path.of(folder)).toAbsolutePath().toString();
    } catch (InvalidPathException e) {
      absolute = folder;
    }
    candidates.add(new Candidate(origin, absolute));
  }

  /**
   * Has the libraries of a manifest as files.
   *
   * @return their folder
   * @throws GgmlException if no candidate can be used, with the reason for each; or if what is
   *     unpacked is not what the manifest says
   */
  Path unpack(Platform platform, Manifest manifest, ResourceFolder source) {
    StringBuilder refusals = new StringBuilder();
    for (Candidate candidate : candidates) {
      String refusal;
      try {
        Owned owned = Owned.create(candidate.path());
        Path folder =
            new UnpackedFolder(owned, platform + "-" + manifest.digest(), manifest, source).ready();
        LOG.debug("{}: {} ({})", manifest.origin(), folder, candidate.origin());
        return folder;
      } catch (IOException e) {
        refusal = "%s (%s): %s".formatted(candidate.folder(), candidate.origin(), e);
      }
      LOG.debug("no native libraries in {}", refusal);
      refusals.append("\n  ").append(refusal);
    }
    throw new GgmlException(
        "no folder to unpack %s to; set the system property %s or the environment variable %s to one that"
                .formatted(manifest.origin(), PROPERTY, ENVIRONMENT)
            + " you own, that nobody else may write to and that may hold libraries. Tried:"
            + refusals);
  }
}
