package org.ggmlext.natives;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.FindException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A folder of a jar or run-time image, on the class path or the module path. */
interface ResourceFolder extends AutoCloseable {
  /** Opens a file of this folder; null if there is none. */
  @Nullable InputStream open(String name) throws IOException;

  @Override
  void close() throws IOException;

  /**
   * Finds the folder that has a certain file: first where a class loader looks, then in the modules
   * that are there but that nothing requires, so that a jar of natives needs no {@code requires}.
   */
  static Optional<ResourceFolder> find(ClassLoader loader, String folder, String file)
      throws IOException {
    if (loader.getResource(folder + file) != null) {
      return Optional.of(new OfLoader(loader, folder));
    }
    for (ModuleReference module : unresolvedModules()) {
      ModuleReader reader = module.open();
      if (reader.find(folder + file).isPresent()) {
        return Optional.of(new OfModule(reader, folder));
      }
      reader.close();
    }
    return Optional.empty();
  }

  /** Our own modules on the module path and in the run-time image, required or not. */
  private static Iterable<ModuleReference> unresolvedModules() {
    String path = System.getProperty("jdk.module.path", "");
    ModuleFinder onPath =
        ModuleFinder.of(
            Stream.of(path.split(File.pathSeparator))
                .filter(entry -> !entry.isEmpty())
                .map(Path::of)
                .toArray(Path[]::new));
    try {
      return ModuleFinder.compose(onPath, ModuleFinder.ofSystem()).findAll().stream()
          .filter(module -> module.descriptor().name().startsWith("org.ggmlext."))
          .sorted((a, b) -> a.descriptor().compareTo(b.descriptor()))
          .toList();
    } catch (FindException e) {
      LOG.debug("the module path cannot be searched for native libraries", e);
      return List.of();
    }
  }

  Logger LOG = LoggerFactory.getLogger("org.ggmlext.natives");

  /** What a class loader finds: the class path, and the modules that are resolved. */
  record OfLoader(ClassLoader loader, String folder) implements ResourceFolder {
    @Override
    public @Nullable InputStream open(String name) {
      return loader.getResourceAsStream(folder + name);
    }

    @Override
    public void close() {}
  }

  /** One module. */
  record OfModule(ModuleReader reader, String folder) implements ResourceFolder {
    @Override
    public @Nullable InputStream open(String name) throws IOException {
      return reader.open(folder + name).orElse(null);
    }

    @Override
    public void close() throws IOException {
      reader.close();
    }
  }
}
