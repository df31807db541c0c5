package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.bindings.GgmlLookup;
import org.ggmlext.bindings.ggml_ext_abi_info;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_load_params;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.WrittenMemory;
import org.ggmlext.internal.callback.Failures;
import org.ggmlext.internal.callback.Stubs;
import org.ggmlext.internal.load.DynamicLoader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Loads libggml-ext, shows it the loaded ggml, and has it patch the devices. */
final class LayerLoader {
  private static final Logger LOG = LoggerFactory.getLogger("org.ggmlext.ext");

  private LayerLoader() {}

  /**
   * What came of it.
   *
   * @param refusals why devices are not extended
   */
  record Layer(AbiInfo abi, Map<Device, String> refusals) {}

  static Layer load(Ggml ggml, Path library) {
    SymbolLookup symbols = DynamicLoader.load(library.toString());
    if (symbols.find("ggml_ext_api_version").isEmpty()) {
      throw new GgmlException(
          library + " is a library, but not ggml-ext: it has no function ggml_ext_api_version");
    }
    GgmlLookup.GGML_EXT.set(symbols);
    int version = ggml_ext_h.ggml_ext_api_version();
    if (version != ggml_ext_h.GGML_EXT_API_VERSION()) {
      throw new GgmlException(
          "%s has API version %d, expected %d"
              .formatted(library, version, ggml_ext_h.GGML_EXT_API_VERSION()));
    }
    // Bound here, so that nothing comes between a failing call and the question why.
    ggml_ext_h.ggml_ext_last_error();
    Failures.libraryLoaded();
    connectLog();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = ggml_ext_load_params.allocate(arena);
      ggml_ext_load_params.struct_size(params, params.byteSize());
      ggml_ext_load_params.base_path(params, arena.allocateFrom(ggml.baseLibrary()));
      ggml_ext_load_params.ggml_path(params, arena.allocateFrom(ggml.registryLibrary()));
      ExtStatus.check(ggml_ext_h.ggml_ext_load(params));
    }
    WrittenMemory.layerLoaded();
    Map<Device, String> refusals = attachDevices(ggml);
    return new Layer(abiInfo(), refusals);
  }

  private static void connectLog() {
    ggml_ext_h.ggml_ext_log_set(Stubs.LOG, MemorySegment.NULL);
    // After the VM has ended, native threads may still log.
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> ggml_ext_h.ggml_ext_log_set(MemorySegment.NULL, MemorySegment.NULL),
                "ggml-ext-log-disconnect"));
  }

  private static Map<Device, String> attachDevices(Ggml ggml) {
    Map<Device, String> refusals = new LinkedHashMap<>();
    // The layer proves table layouts on the CPU device, so that one comes first.
    List<Device> cpuFirst =
        ggml.devices().stream()
            .sorted(Comparator.comparing(device -> device.type() != DeviceType.CPU))
            .toList();
    for (Device device : cpuFirst) {
      int status = ggml_ext_h.ggml_ext_attach_device(device.handle());
      if (status != ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
        String reason = device.name() + ": " + ExtStatus.message(status);
        LOG.warn("a device cannot be extended, and is used as it is: {}", reason);
        refusals.put(device, reason);
      }
    }
    if (refusals.size() == cpuFirst.size()) {
      throw new GgmlException(
          "no device of %s can be extended: %s"
              .formatted(ggml, String.join("; ", refusals.values())));
    }
    return Collections.unmodifiableMap(refusals);
  }

  private static AbiInfo abiInfo() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = ggml_ext_abi_info.allocate(arena);
      ggml_ext_abi_info.struct_size(info, info.byteSize());
      ExtStatus.check(ggml_ext_h.ggml_ext_get_abi_info(info));
      return new AbiInfo(
          Native.string(ggml_ext_abi_info.ggml_version(info)),
          ggml_ext_abi_info.has_graph_views(info),
          Native.string(ggml_ext_abi_info.note(info)));
    }
  }
}
