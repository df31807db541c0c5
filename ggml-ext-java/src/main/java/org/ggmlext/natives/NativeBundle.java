package org.ggmlext.natives;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import org.ggmlext.GgmlException;
import org.jspecify.annotations.Nullable;

/**
 * The native libraries that a jar brings along for this machine, unpacked when they are first asked
 * for.
 *
 * <p>Safe for use by several threads.
 */
public final class NativeBundle {
  /** ggml itself, from the jar {@code ggml-stock}. */
  public static final NativeBundle GGML = new NativeBundle("ggml-stock", "ggml/");

  /** libggml-ext and its kernel libraries, from the jar {@code ggml-ext-natives}. */
  public static final NativeBundle EXT = new NativeBundle("ggml-ext-natives", "");

  /** The CUDA kernel library, from a jar {@code ggml-ext-natives} of its own classifier. */
  public static final NativeBundle EXT_CUDA =
      new NativeBundle("ggml-ext-natives, classifier linux-x86_64-cuda", "cuda/");

  private static final String MANIFEST = "manifest.properties";

  private final String artifact;
  private final Platform platform;
  private final String resources;
  private final ClassLoader loader;
  private final NativeCache cache;

  private @Nullable Path unpacked;

  private NativeBundle(String artifact, String subfolder) {
    this(
        artifact,
        subfolder,
        Platform.current(),
        Objects.requireNonNullElseGet(
            NativeBundle.class.getClassLoader(), ClassLoader::getSystemClassLoader),
        new NativeCache(NativeCache.candidates(System::getProperty, System::getenv)));
  }

  NativeBundle(
      String artifact, String subfolder, Platform platform, ClassLoader loader, NativeCache cache) {
    this.artifact = artifact;
    this.platform = platform;
    this.resources = "META-INF/native/" + platform + "/" + subfolder;
    this.loader = loader;
    this.cache = cache;
  }

  /**
   * The folder that holds the libraries as siblings, checked against the hashes of their manifest.
   *
   * @return empty if no jar has libraries for this machine
   * @throws GgmlException if the jar is damaged, or no cache folder can be used
   */
  public synchronized Optional<Path> folder() {
    if (unpacked == null) {
      try (ResourceFolder found = ResourceFolder.find(loader, resources, MANIFEST).orElse(null)) {
        if (found == null) {
          return Optional.empty();
        }
        unpacked = cache.unpack(platform, manifest(found), found);
      } catch (IOException e) {
        throw new GgmlException("cannot read %s: %s".formatted(this, e), e);
      }
    }
    return Optional.of(unpacked);
  }

  private Manifest manifest(ResourceFolder folder) throws IOException {
    try (InputStream in = folder.open(MANIFEST)) {
      if (in == null) {
        throw new GgmlException(this + " has vanished");
      }
      return Manifest.parse(toString(), in.readAllBytes());
    }
  }

  /** What is looked for: a resource, and the jar that has it. */
  @Override
  public String toString() {
    return resources + MANIFEST + " of the jar " + artifact;
  }
}
