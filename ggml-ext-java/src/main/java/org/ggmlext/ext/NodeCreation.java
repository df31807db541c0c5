package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.ggmlext.Context;
import org.ggmlext.Tensor;
import org.ggmlext.bindings.ggml_ext_h;

/** Makes nodes of registered operators. */
final class NodeCreation {
  private NodeCreation() {}

  static Tensor create(Context context, String operator, byte[] attributes, Tensor... sources) {
    if (sources.length > ggml_ext_h.GGML_EXT_MAX_SRC()) {
      throw new IllegalArgumentException(
          operator + " was given " + sources.length + " sources; a node has at most 10");
    }
    for (int i = 0; i < sources.length; i++) {
      if (sources[i] == null) {
        throw new NullPointerException(operator + ": source " + i + " is null");
      }
    }
    Extensions.requireAttached();
    return context.nativeNode(
        1, List.of(sources), handle -> create(handle, operator, attributes, sources));
  }

  private static MemorySegment create(
      MemorySegment context, String operator, byte[] attributes, Tensor... sources) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment array = arena.allocate(ValueLayout.ADDRESS, Math.max(1, sources.length));
      for (int i = 0; i < sources.length; i++) {
        array.setAtIndex(ValueLayout.ADDRESS, i, sources[i].handle());
      }
      MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, attributes);
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(
          ggml_ext_h.ggml_ext_op_create(
              context,
              arena.allocateFrom(operator),
              sources.length,
              array,
              bytes,
              attributes.length,
              out));
      return out.get(ValueLayout.ADDRESS, 0);
    }
  }
}
