package org.ggmlext.internal.load;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.ggmlext.bindings.GgmlLookup;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_tensor;
import org.ggmlext.internal.Native;
import org.ggmlext.natives.LibraryFormat;
import org.ggmlext.natives.NativeBundle;

/** ggml's libraries, loaded, with their functions bound and their log connected. */
public final class GgmlLibraries {
  /** Bytes that ggml puts before each object of a context. */
  private static final long OBJECT_SIZE = 32;

  private final GgmlLocator.Location location;
  private final String version;

  private GgmlLibraries(GgmlLocator.Location location) {
    this.location = location;
    this.version =
        GgmlLookup.GGML.find("ggml_version").isPresent()
            ? Native.string(ggml_h.ggml_version())
            : "";
  }

  /**
   * Loads ggml from a location.
   *
   * @throws GgmlException if a library cannot be loaded, is no ggml, or has structs of another
   *     layout
   */
  public static GgmlLibraries load(GgmlLocator.Location location, boolean loadBackends) {
    refuseSecondCopy(location);
    SymbolLookup base = base(location);
    SymbolLookup registry = library(location.registry(), "ggml_backend_dev_count");
    try {
      GgmlLookup.GGML.set(name -> base.find(name).or(() -> registry.find(name)));
    } catch (IllegalStateException e) {
      throw new GgmlException("cannot use ggml at " + location + ": " + e.getMessage(), e);
    }
    long overhead = ggml_h.ggml_tensor_overhead();
    if (overhead != ggml_tensor.sizeof() + OBJECT_SIZE) {
      throw new GgmlException(
          "ggml at %s has another struct ggml_tensor than this library: %d bytes, not %d"
              .formatted(location, overhead - OBJECT_SIZE, ggml_tensor.sizeof()));
    }
    LogBridge.connect();
    GgmlLibraries libraries = new GgmlLibraries(location);
    if (loadBackends) {
      libraries.loadBackends();
    }
    return libraries;
  }

  private static SymbolLookup base(GgmlLocator.Location location) {
    try {
      return library(location.base(), "ggml_init", "ggml_backend_sched_new");
    } catch (GgmlException e) {
      throw location.backends() != null
          ? e
          : new GgmlException(
              "no ggml: the system property ggml.home and the environment variable GGML_HOME are"
                  + " not"
                  + " set, there is no %s on the class path or module path, and the system has none: %s"
                      .formatted(NativeBundle.GGML, e.getMessage()),
              e);
    }
  }

  private static SymbolLookup library(String path, String... functions) {
    SymbolLookup library = DynamicLoader.load(path);
    for (String function : functions) {
      if (library.find(function).isEmpty()) {
        throw new GgmlException(
            "%s is a library, but not ggml's: it has no function %s".formatted(path, function));
      }
    }
    return library;
  }

  private void loadBackends() {
    if (ggml_backend_h.ggml_backend_dev_count() > 0) {
      // Built in, or loaded by another class loader's copy of this class: never twice.
      return;
    }
    Path folder = location.backends();
    if (folder == null) {
      ggml_backend_h.ggml_backend_load_all();
    } else {
      try (Arena arena = Arena.ofConfined()) {
        ggml_backend_h.ggml_backend_load_all_from_path(arena.allocateFrom(folder.toString()));
      }
    }
    if (ggml_backend_h.ggml_backend_dev_count() == 0) {
      throw new GgmlException(
          "ggml at %s brings no backend: expected files such as %s in %s"
              .formatted(
                  location,
                  LibraryFormat.current().file("ggml-cpu"),
                  folder == null ? "ggml's own folders" : folder));
    }
  }

  /**
   * Loads one backend.
   *
   * @return the devices that it adds
   */
  public List<MemorySegment> loadBackend(String path) {
    if (!Files.isRegularFile(Path.of(path))) {
      throw new GgmlException("no file " + path + " to load a backend from");
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment registry = ggml_backend_h.ggml_backend_load(arena.allocateFrom(path));
      if (Native.isNull(registry)) {
        throw new GgmlException(
            "ggml cannot load %s as a backend; its log (org.ggmlext.ggml) says why"
                .formatted(path));
      }
      List<MemorySegment> devices = new ArrayList<>();
      long count = ggml_backend_h.ggml_backend_reg_dev_count(registry);
      for (long i = 0; i < count; i++) {
        devices.add(ggml_backend_h.ggml_backend_reg_dev_get(registry, i));
      }
      return devices;
    }
  }

  /** A second base library would share symbols with the first one and corrupt both. */
  private static void refuseSecondCopy(GgmlLocator.Location location) {
    Path maps = Path.of("/proc/self/maps");
    if (location.base().indexOf('/') < 0 || !Files.isReadable(maps)) {
      return;
    }
    try (Stream<String> lines = Files.lines(maps)) {
      lines
          .filter(line -> line.indexOf('/') >= 0)
          .map(line -> line.substring(line.indexOf('/')))
          .filter(path -> path.matches(".*/libggml-base\\.so[.0-9]*( \\(deleted\\))?"))
          .filter(path -> !path.equals(location.base()))
          .findFirst()
          .ifPresent(
              path -> {
                throw new GgmlException(
                    "this process has loaded %s already; a second copy of ggml, %s, cannot be loaded"
                        .formatted(path, location.base()));
              });
    } catch (IOException e) {
      throw new GgmlException("cannot read " + maps + ": " + e.getMessage(), e);
    }
  }

  /** Where these libraries came from. */
  public GgmlLocator.Location location() {
    return location;
  }

  /** ggml's version; "" where it does not say. */
  public String version() {
    return version;
  }

  /** The base library as it was loaded. */
  public String basePath() {
    return location.base();
  }

  /** The library with the registry of backends as it was loaded. */
  public String registryPath() {
    return location.registry();
  }
}
