package org.ggmlext.internal.load;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.ggmlext.natives.LibraryFormat;
import org.ggmlext.natives.NativeBundle;
import org.jspecify.annotations.Nullable;

/** Finds the folder of ggml's libraries. */
public final class GgmlLocator {
  private static final LibraryFormat FORMAT = LibraryFormat.current();

  private GgmlLocator() {}

  /**
   * Where ggml is.
   *
   * @param base path of the base library, or its name for the system's loader
   * @param registry path of the library with the registry of backends, or its name
   * @param backends folder of the backends; null: where the libraries themselves look
   */
  public record Location(String base, String registry, @Nullable Path backends) {
    /** Whether another location names the same libraries. */
    public boolean sameAs(Location other) {
      return base.equals(other.base) && registry.equals(other.registry);
    }

    @Override
    public String toString() {
      return backends != null ? backends.toString() : base + " of the system";
    }
  }

  /**
   * The first place that is given: the argument, the property, the environment, the bundle, the
   * system.
   *
   * @throws GgmlException if that place has no ggml
   */
  public static Location locate(@Nullable Path home) {
    if (home != null) {
      return inFolder(home, "the given folder", FORMAT);
    }
    Optional<Setting> set = Setting.find("ggml.home", "GGML_HOME");
    if (set.isPresent()) {
      return inFolder(set.get().path(), set.get().origin(), FORMAT);
    }
    Optional<Path> bundle = NativeBundle.GGML.folder();
    if (bundle.isPresent()) {
      return inFolder(bundle.get(), "the natives jar", FORMAT);
    }
    return new Location(FORMAT.systemFile("ggml-base"), FORMAT.systemFile("ggml"), null);
  }

  static Location inFolder(Path home, String source, LibraryFormat format) {
    if (!Files.isDirectory(home)) {
      throw new GgmlException(
          "%s, from %s, is no folder; it must hold %s and %s"
              .formatted(home, source, format.file("ggml-base"), format.file("ggml")));
    }
    for (Path folder : List.of(home, home.resolve("lib"), home.resolve("bin"))) {
      Optional<Path> base = library(folder, format.files("ggml-base"));
      if (base.isPresent()) {
        Path registry =
            library(folder, format.files("ggml(\\.v\\d+(\\.\\d+)*)?"))
                .orElseThrow(
                    () ->
                        new GgmlException(
                            "%s, from %s, has %s but no %s"
                                .formatted(
                                    folder,
                                    source,
                                    base.get().getFileName(),
                                    format.file("ggml"))));
        return new Location(base.get().toString(), registry.toString(), backends(folder));
      }
    }
    throw new GgmlException(
        "%s, from %s, holds no ggml: there is no %s in it or in its folders lib and bin"
            .formatted(home, source, format.file("ggml-base")));
  }

  private static Path backends(Path folder) {
    // Distributions keep backends in a folder of their own, one for each version of the interface.
    Path own = folder.resolve("ggml");
    if (Files.isDirectory(own)) {
      try (Stream<Path> folders = Files.list(own)) {
        return folders
            .filter(path -> path.getFileName().toString().startsWith("backends"))
            .max(Comparator.naturalOrder())
            .orElse(folder);
      } catch (IOException e) {
        throw new GgmlException("cannot read the folder " + own + ": " + e.getMessage(), e);
      }
    }
    return folder;
  }

  private static Optional<Path> library(Path folder, Pattern name) {
    if (!Files.isDirectory(folder)) {
      return Optional.empty();
    }
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(path -> name.matcher(fileName(path)).matches())
          .min(
              Comparator.comparingInt((Path path) -> fileName(path).length())
                  .thenComparing(path -> path))
          .map(GgmlLocator::realPath);
    } catch (IOException e) {
      throw new GgmlException("cannot read the folder " + folder + ": " + e.getMessage(), e);
    }
  }

  private static String fileName(Path path) {
    return Objects.requireNonNull(path.getFileName()).toString();
  }

  private static Path realPath(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      throw new GgmlException("cannot read " + path + ": " + e.getMessage(), e);
    }
  }
}
