package org.ggmlext.internal;

import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_ext_h;

/**
 * Tells the layer, once it is loaded, which memory was written: kernels may keep copies of weights.
 */
public final class WrittenMemory {
  private static volatile boolean layerLoaded;

  private WrittenMemory() {}

  public static void layerLoaded() {
    layerLoaded = true;
  }

  public static void report(MemorySegment memory) {
    if (layerLoaded) {
      ggml_ext_h.ggml_ext_weights_changed(memory, memory.byteSize());
    }
  }
}
