package org.ggmlext;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.load.GgmlLibraries;
import org.ggmlext.internal.load.GgmlLocator;
import org.jspecify.annotations.Nullable;

/**
 * ggml, loaded into this process. There is one; it stays until the process ends.
 *
 * <p>ggml's log lines go to the SLF4J logger {@code org.ggmlext.ggml}.
 *
 * <p>Safe for use by several threads.
 */
public final class Ggml {
  private static @Nullable Ggml loaded;

  private final GgmlLibraries libraries;
  private final List<Device> devices;

  private Ggml(GgmlLibraries libraries) {
    this.libraries = libraries;
    List<Device> found = new ArrayList<>();
    long count = ggml_backend_h.ggml_backend_dev_count();
    for (long i = 0; i < count; i++) {
      found.add(new Device(ggml_backend_h.ggml_backend_dev_get(i)));
    }
    this.devices = List.copyOf(found);
  }

  /**
   * Loads ggml with {@link GgmlOptions#defaults}; where it is loaded already, wherever from, gives
   * that.
   *
   * @throws GgmlException if no ggml is found, or it cannot be loaded
   */
  public static synchronized Ggml load() {
    return loaded != null ? loaded : load(GgmlOptions.defaults());
  }

  /**
   * Loads ggml from, in this order, {@link GgmlOptions#home}, the system property {@code
   * ggml.home}, the environment variable {@code GGML_HOME}, the natives jar on the class path, the
   * system's libraries. The first of these that is given counts; what is wrong with it is reported,
   * not skipped.
   *
   * @return the same object for the same place
   * @throws GgmlException if no ggml is found there, or it cannot be loaded
   * @throws IllegalStateException if another ggml is loaded already
   */
  public static synchronized Ggml load(GgmlOptions options) {
    Objects.requireNonNull(options, "options");
    GgmlLocator.Location location = GgmlLocator.locate(options.home());
    if (loaded != null) {
      if (!loaded.libraries.location().sameAs(location)) {
        throw new IllegalStateException(
            "ggml is loaded from %s already; a process cannot load %s as well"
                .formatted(loaded.libraries.location(), location));
      }
      return loaded;
    }
    Ggml ggml = new Ggml(GgmlLibraries.load(location, options.loadBackends()));
    loaded = ggml;
    return ggml;
  }

  /**
   * The loaded ggml.
   *
   * @throws IllegalStateException if {@link #load} has not been called
   */
  public static synchronized Ggml get() {
    if (loaded == null) {
      throw new IllegalStateException("ggml is not loaded: call Ggml.load() first");
    }
    return loaded;
  }

  /** All devices, in ggml's order. */
  public List<Device> devices() {
    return devices;
  }

  /**
   * The device of this name, upper or lower case.
   *
   * @throws IllegalArgumentException if there is none; the message lists those that there are
   */
  public Device device(String name) {
    for (Device device : devices) {
      if (device.name().toLowerCase(Locale.ROOT).equals(name.toLowerCase(Locale.ROOT))) {
        return device;
      }
    }
    throw new IllegalArgumentException("no device \"" + name + "\"; there are " + devices);
  }

  /** The first device of this kind. */
  public Device device(DeviceType type) {
    for (Device device : devices) {
      if (device.type() == type) {
        return device;
      }
    }
    throw new IllegalArgumentException("no device of type " + type + "; there are " + devices);
  }

  /** ggml's version, such as {@code 0.23.0}; "" where it does not say. */
  public String version() {
    return libraries.version();
  }

  /** Path or name of the base library as it was loaded. */
  public String baseLibrary() {
    return libraries.basePath();
  }

  /** Path or name of the library that holds the registry of backends, as it was loaded. */
  public String registryLibrary() {
    return libraries.registryPath();
  }

  /**
   * Loads a further backend (a file such as {@code libggml-cuda.so}). {@link #devices} stays as it
   * was.
   *
   * @return the devices that it adds
   * @throws GgmlException if ggml cannot load it
   */
  public List<Device> loadBackend(String path) {
    return libraries.loadBackend(path).stream().map(Device::new).toList();
  }

  @Override
  public String toString() {
    return "ggml " + version() + " at " + libraries.location();
  }
}
