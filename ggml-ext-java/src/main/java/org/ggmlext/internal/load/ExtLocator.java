package org.ggmlext.internal.load;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.ggmlext.GgmlException;
import org.ggmlext.natives.LibraryFormat;
import org.ggmlext.natives.NativeBundle;
import org.jspecify.annotations.Nullable;

/** Finds the extension layer's library and the kernel libraries that come with it. */
public final class ExtLocator {
  private static final LibraryFormat FORMAT = LibraryFormat.current();
  private static final List<String> NAMES = List.of("cpu", "cuda");
  private static final String PROPERTY = "ggml.ext.library";
  private static final String ENVIRONMENT = "GGML_EXT_LIBRARY";

  private ExtLocator() {}

  /**
   * The file of libggml-ext: the given one, the system property {@code ggml.ext.library}, the
   * environment variable {@code GGML_EXT_LIBRARY}, the natives jar. The first that is given counts.
   *
   * @throws GgmlException if there is none, or what is given is no file
   */
  public static Path library(@Nullable Path explicit) {
    if (explicit != null) {
      return existing(explicit, "the given path");
    }
    Optional<Path> set = set();
    return set.isPresent() ? set.get() : bundled(NativeBundle.EXT, FORMAT.file("ggml-ext"));
  }

  /**
   * A kernel library that comes with this one: beside the library that is set, else in the natives
   * jar, that of CUDA in a jar of its own.
   *
   * @param name such as {@code cpu} for {@code libggml-ext-cpu.so}
   * @throws IllegalArgumentException if the name is none
   * @throws GgmlException if there is no such library
   */
  public static Path kernelLibrary(String name) {
    if (!NAMES.contains(name)) {
      throw new IllegalArgumentException(
          "there is no bundled kernel library \"%s\": expected \"%s\""
              .formatted(name, String.join("\" or \"", NAMES)));
    }
    String file = FORMAT.file("ggml-ext-" + name);
    Optional<Path> set = set();
    return set.isPresent()
        ? existing(set.get().resolveSibling(file), "the kernel library \"" + name + "\"")
        : bundled(name.equals("cuda") ? NativeBundle.EXT_CUDA : NativeBundle.EXT, file);
  }

  private static Optional<Path> set() {
    return Setting.find(PROPERTY, ENVIRONMENT)
        .map(setting -> existing(setting.path(), setting.origin()));
  }

  private static Path existing(Path path, String origin) {
    if (!Files.isRegularFile(path)) {
      throw new GgmlException(origin + " says " + path + ", but there is no such file");
    }
    return path.toAbsolutePath();
  }

  private static Path bundled(NativeBundle bundle, String file) {
    Path path =
        bundle
            .folder()
            .map(folder -> folder.resolve(file))
            .orElseThrow(
                () ->
                    new GgmlException(
                        "no "
                            + file
                            + ": there is no "
                            + bundle
                            + " on the class path or module path, and neither the system property "
                            + PROPERTY
                            + " nor the environment variable "
                            + ENVIRONMENT
                            + " is set"));
    return existing(path, "the natives jar");
  }
}
