package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.ggmlext.Device;
import org.ggmlext.GgmlException;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.callback.Registry;
import org.ggmlext.internal.callback.Stubs;
import org.ggmlext.internal.load.DynamicLoader;
import org.ggmlext.internal.load.ExtLocator;

/**
 * A shared library of native kernels: it exports {@code ggml_ext_kernel_library_init} as {@code
 * ggml-ext.h} describes it. Calling such a kernel involves no Java. A loaded library stays until
 * the process ends.
 */
public final class KernelLibrary {
  private static final String INIT = "ggml_ext_kernel_library_init";

  private record Place(long init, Device device) {}

  /** The last registration of each library on each device. */
  private static final Map<Place, LibraryRegistration> REGISTERED = new ConcurrentHashMap<>();

  private final Path path;
  private final MemorySegment init;

  private KernelLibrary(Path path, MemorySegment init) {
    this.path = path;
    this.init = init;
  }

  /**
   * Loads a library.
   *
   * @throws GgmlException if it cannot be loaded, or is no kernel library
   */
  public static KernelLibrary load(Path path) {
    Extensions.requireAttached();
    Path absolute = path.toAbsolutePath();
    SymbolLookup symbols = DynamicLoader.loadBound(absolute.toString());
    MemorySegment init =
        symbols
            .find(INIT)
            .orElseThrow(
                () ->
                    new GgmlException(
                        absolute + " is a library, but no kernel library: it has no " + INIT));
    return new KernelLibrary(absolute, init);
  }

  /**
   * Loads a library that comes with this one.
   *
   * @param name {@code "cpu"} or {@code "cuda"}
   * @throws IllegalArgumentException if the name is another
   * @throws GgmlException if the library is not there, or cannot be loaded
   */
  public static KernelLibrary bundled(String name) {
    return load(ExtLocator.kernelLibrary(name));
  }

  LibraryRegistration register(Device device) {
    List<Registration> added = new ArrayList<>();
    int status =
        Registry.collect(
            handle -> added.add(registration(MemorySegment.ofAddress(handle))),
            slot ->
                ggml_ext_h.ggml_ext_init_kernel_library(
                    init, device.handle(), Stubs.ADD_REGISTRATION, MemorySegment.ofAddress(slot)));
    Place place = new Place(init.address(), device);
    if (status != ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
      String message = ExtStatus.message(status);
      LibraryRegistration before = REGISTERED.get(place);
      if (status == ggml_ext_h.GGML_EXT_STATUS_DUPLICATE() && before != null && before.isOpen()) {
        throw new GgmlException(
            "%s is registered on %s already (%s)"
                .formatted(path, device.name(), message.replaceFirst(" is registered.*", "")));
      }
      throw new GgmlException(path + " registers nothing on " + device.name() + ": " + message);
    }
    LibraryRegistration registration = new LibraryRegistration(added);
    REGISTERED.put(place, registration);
    return registration;
  }

  private static Registration registration(MemorySegment handle) {
    MemorySegment name = ggml_ext_h.ggml_ext_registration_name(handle);
    return new Registration(
        name.reinterpret(ggml_ext_h.GGML_EXT_MAX_NAME()).getString(0),
        handle,
        Registration.Kind.OF_LIBRARY);
  }

  @Override
  public String toString() {
    return "kernel library " + path;
  }
}
