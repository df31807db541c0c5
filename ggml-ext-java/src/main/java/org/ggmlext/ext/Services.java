package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.bindings.ggml_ext_h;

/** Finds the layer's services; NULL where there is none, and C's last error then says why. */
final class Services {
  private Services() {}

  static MemorySegment ofDevice(MemorySegment device, String name) {
    try (Arena arena = Arena.ofConfined()) {
      return ggml_ext_h.ggml_ext_get_service(device, arena.allocateFrom(name));
    }
  }

  static MemorySegment ofBackend(MemorySegment backend, String name) {
    return ofDevice(ggml_backend_h.ggml_backend_get_device(backend), name);
  }
}
