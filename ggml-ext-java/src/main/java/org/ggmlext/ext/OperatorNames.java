package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.callback.Failures;
import org.ggmlext.internal.callback.OperatorTarget;
import org.ggmlext.internal.callback.Registry;
import org.jspecify.annotations.Nullable;

/**
 * Names of nodes' operators. The layer tells them to callbacks only, so an operator of our own
 * asks: it is given the node as a source, reads the name, and refuses, so that no node is ever
 * made.
 */
final class OperatorNames {
  private static final String ASKING = "org.ggmlext.asking.v1";

  private static final class Answered extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Answered() {
      super("the name was asked for only", null, false, false);
    }
  }

  private static final ThreadLocal<@Nullable String> ANSWER = new ThreadLocal<>();

  private static boolean registered;

  private OperatorNames() {}

  private static synchronized void register() {
    if (registered) {
      return;
    }
    OperatorTarget target =
        (count, sources, attributes, output) -> {
          TensorInfo node = Objects.requireNonNull(NodeInfo.tensors(1, sources).getFirst());
          ANSWER.set(node.op());
          throw new Answered();
        };
    ExtStatus.check(
        Registry.operator(
            target, ASKING, 0, desc -> ggml_ext_h.ggml_ext_register_op(desc, MemorySegment.NULL)));
    registered = true;
  }

  /**
   * ggml's name of the operation that computes a tensor, or its registered operator's.
   *
   * @param context a {@code ggml_context *}, in which nothing is made
   * @param tensor a {@code ggml_tensor *} that is kept open
   */
  static String of(MemorySegment context, MemorySegment tensor) {
    register();
    try (Arena arena = Arena.ofConfined()) {
      int status =
          ggml_ext_h.ggml_ext_op_create(
              context,
              arena.allocateFrom(ASKING),
              1,
              arena.allocateFrom(ValueLayout.ADDRESS, tensor),
              MemorySegment.NULL,
              0,
              arena.allocate(ValueLayout.ADDRESS));
      String answer = ANSWER.get();
      if (answer == null) {
        ExtStatus.check(status);
        throw new AssertionError("the asking operator made a node");
      }
      Failures.last(); // that refusal is nobody's reason
      return answer;
    } finally {
      ANSWER.remove();
    }
  }
}
