package org.ggmlext;

import java.util.List;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;

/** How much memory a graph may need. */
final class MemoryNeed {
  /** Less than this is there on a CPU, or Java would have failed before. */
  private static final long SMALL = 256L << 20;

  /** What a buffer type may add to a tensor. */
  private static final long PADDING = 512;

  private MemoryNeed() {}

  /** Whether memory for a graph may not be there. */
  static boolean isUncertain(Graph graph, List<Backend> backends) {
    long most = atMost(graph);
    if (most > SMALL) {
      return true;
    }
    for (Backend backend : backends) {
      Device device = backend.device();
      if (device.type() != DeviceType.CPU && most > device.memory().free() / 2) {
        return true;
      }
    }
    return false;
  }

  /** Bytes of all tensors without memory, if none reused that of another. */
  private static long atMost(Graph graph) {
    LongList members = graph.snapshot();
    long bytes = 0;
    for (int i = 0; i < members.size() && bytes <= SMALL; i++) {
      long tensor = members.get(i);
      if (Native.viewSrc(tensor) == 0 && Native.buffer(tensor) == 0) {
        bytes += ggml_h.ggml_nbytes(Native.tensor(tensor)) + PADDING;
      }
    }
    return bytes;
  }
}
