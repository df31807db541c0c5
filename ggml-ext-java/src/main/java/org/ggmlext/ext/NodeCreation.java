package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.ggmlext.Context;
import org.ggmlext.Tensor;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.CString;

/** Makes nodes of registered operators. */
final class NodeCreation {
  private NodeCreation() {}

  static Tensor create(
      Context context, Operator<?> operator, byte[] attributes, Tensor... sources) {
    if (sources.length > ggml_ext_h.GGML_EXT_MAX_SRC()) {
      throw new IllegalArgumentException(
          operator.name() + " was given " + sources.length + " sources; a node has at most 10");
    }
    for (int i = 0; i < sources.length; i++) {
      if (sources[i] == null) {
        throw new NullPointerException(operator.name() + ": source " + i + " is null");
      }
    }
    Extensions.requireAttached();
    return context.nativeNode(
        1, List.of(sources), handle -> create(handle, operator, attributes, sources));
  }

  private static MemorySegment create(
      MemorySegment context, Operator<?> operator, byte[] attributes, Tensor... sources) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment array = arena.allocate(ValueLayout.ADDRESS, Math.max(1, sources.length));
      for (int i = 0; i < sources.length; i++) {
        array.setAtIndex(ValueLayout.ADDRESS, i, sources[i].handle());
      }
      MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, attributes);
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      int status =
          ggml_ext_h.ggml_ext_op_create(
              context,
              CString.allocate(arena, "the operator's name", operator.name()),
              sources.length,
              array,
              bytes,
              attributes.length,
              out);
      if (status == ggml_ext_h.GGML_EXT_STATUS_NOT_FOUND()) {
        String message = ExtStatus.message(status);
        // A library's inference may use this status, too.
        boolean unknown = message.endsWith(" is not registered");
        throw new IllegalArgumentException(
            unknown ? message + ": " + operator.howToRegister() : message);
      }
      ExtStatus.check(status);
      return out.get(ValueLayout.ADDRESS, 0);
    }
  }
}
