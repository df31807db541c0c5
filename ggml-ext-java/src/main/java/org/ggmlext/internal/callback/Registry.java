package org.ggmlext.internal.callback;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.function.LongConsumer;
import java.util.function.LongToIntFunction;
import java.util.function.ToIntFunction;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_kernel_desc;
import org.ggmlext.bindings.ggml_ext_op_desc;
import org.ggmlext.internal.CString;
import org.jspecify.annotations.Nullable;

/** Hands Java objects to C: gives them a number, and fills the descriptors with the stubs. */
public final class Registry {
  /** Which callbacks a descriptor has. */
  public enum Callback {
    SUPPORTS,
    PREFERRED,
    MATCH,
    OPTIMIZE,
    RUN,
    EXECUTE
  }

  private Registry() {}

  /**
   * Calls {@code register} with the descriptor of an operator.
   *
   * @param register gives the status; unless it is success, the object is forgotten again
   * @return that status
   * @throws IllegalArgumentException if the name has a zero character
   */
  public static int operator(
      OperatorTarget target,
      String name,
      int attributesSize,
      ToIntFunction<MemorySegment> register) {
    long slot = Callbacks.OPERATORS.add(target);
    int status = ggml_ext_h.GGML_EXT_STATUS_FAILED();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment desc = ggml_ext_op_desc.allocate(arena);
      ggml_ext_op_desc.struct_size(desc, desc.byteSize());
      ggml_ext_op_desc.name(desc, CString.allocate(arena, "the operator's name", name));
      ggml_ext_op_desc.attrs_size(desc, attributesSize);
      ggml_ext_op_desc.infer(desc, Stubs.INFER);
      ggml_ext_op_desc.user_data(desc, MemorySegment.ofAddress(slot));
      ggml_ext_op_desc.release(desc, Stubs.RELEASE_OPERATOR);
      status = register.applyAsInt(desc);
    } finally {
      if (status != ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
        Callbacks.OPERATORS.remove(slot);
      }
    }
    return status;
  }

  /**
   * Calls {@code register} with the descriptor of a kernel, rule or optimiser.
   *
   * @param register gives the status; unless it is success, the object is forgotten again
   * @return that status
   * @throws IllegalArgumentException if a name has a zero character
   */
  public static int kernel(
      KernelTarget target,
      String name,
      @Nullable String op,
      int priority,
      Set<Callback> callbacks,
      ToIntFunction<MemorySegment> register) {
    long slot = Callbacks.KERNELS.add(target);
    int status = ggml_ext_h.GGML_EXT_STATUS_FAILED();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment desc = ggml_ext_kernel_desc.allocate(arena);
      ggml_ext_kernel_desc.struct_size(desc, desc.byteSize());
      ggml_ext_kernel_desc.name(desc, CString.allocate(arena, "the name", name));
      if (op != null) {
        ggml_ext_kernel_desc.op(desc, CString.allocate(arena, "the operation of " + name, op));
      }
      ggml_ext_kernel_desc.priority(desc, priority);
      ggml_ext_kernel_desc.user_data(desc, MemorySegment.ofAddress(slot));
      for (Callback callback : callbacks) {
        switch (callback) {
          case SUPPORTS -> ggml_ext_kernel_desc.supports(desc, Stubs.SUPPORTS);
          case PREFERRED -> ggml_ext_kernel_desc.preferred(desc, Stubs.PREFERRED);
          case MATCH -> ggml_ext_kernel_desc.match(desc, Stubs.MATCH);
          case OPTIMIZE -> ggml_ext_kernel_desc.optimize(desc, Stubs.OPTIMIZE);
          case RUN -> ggml_ext_kernel_desc.run(desc, Stubs.RUN);
          case EXECUTE -> ggml_ext_kernel_desc.execute(desc, Stubs.EXECUTE);
        }
      }
      ggml_ext_kernel_desc.prepare(desc, Stubs.PREPARE);
      ggml_ext_kernel_desc.destroy(desc, Stubs.DESTROY);
      ggml_ext_kernel_desc.release(desc, Stubs.RELEASE_KERNEL);
      status = register.applyAsInt(desc);
    } finally {
      if (status != ggml_ext_h.GGML_EXT_STATUS_SUCCESS()) {
        Callbacks.KERNELS.remove(slot);
      }
    }
    return status;
  }

  /**
   * Gives a number to a task while {@code call} runs with it.
   *
   * @return what {@code call} returns, a status
   */
  public static int parallel(ParallelTarget target, LongToIntFunction call) {
    long slot = Callbacks.PARALLEL.add(new Callbacks.Parallel(target, Computing.backend()));
    try {
      return call.applyAsInt(slot);
    } finally {
      Callbacks.PARALLEL.remove(slot);
    }
  }

  /**
   * Gives a number to a collector of registrations while {@code call} runs with it.
   *
   * @return what {@code call} returns, a status
   */
  public static int collect(LongConsumer collector, LongToIntFunction call) {
    long slot = Callbacks.COLLECTORS.add(collector);
    try {
      return call.applyAsInt(slot);
    } finally {
      Callbacks.COLLECTORS.remove(slot);
    }
  }
}
