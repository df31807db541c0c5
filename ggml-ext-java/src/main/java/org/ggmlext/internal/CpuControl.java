package org.ggmlext.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.function.BooleanSupplier;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.bindings.ggml_backend_set_abort_callback_t;
import org.ggmlext.bindings.ggml_backend_set_n_threads_t;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_threadpool_params;
import org.jspecify.annotations.Nullable;

/**
 * What only the CPU backend has: its threads and its abort callback. The functions are in whatever
 * library the backend came from, so they are asked of its registry. The caller serialises calls.
 */
public final class CpuControl {
  private static final Linker LINKER = Linker.nativeLinker();
  private static final MethodHandle POOL_NEW =
      LINKER.downcallHandle(FunctionDescriptor.of(ADDRESS, ADDRESS));
  private static final MethodHandle POOL_FREE =
      LINKER.downcallHandle(FunctionDescriptor.ofVoid(ADDRESS));
  private static final MethodHandle SET_POOL =
      LINKER.downcallHandle(FunctionDescriptor.ofVoid(ADDRESS, ADDRESS));

  private final MemorySegment registry;
  private final MemorySegment backend;
  private final AbortSlots.Slot abort = AbortSlots.newSlot();
  private MemorySegment pool = MemorySegment.NULL;
  private volatile int threads = 1;

  private CpuControl(MemorySegment registry, MemorySegment backend) {
    this.registry = registry;
    this.backend = backend;
  }

  /** The control of a CPU device's backend. */
  public static CpuControl of(MemorySegment device, MemorySegment backend) {
    return new CpuControl(ggml_backend_h.ggml_backend_dev_backend_reg(device), backend);
  }

  /** Threads that computes use. */
  public int threads() {
    return threads;
  }

  /** Gives the backend so many threads of its own, which stay. */
  public void setThreads(int count) {
    if (count == threads && !Native.isNull(pool)) {
      return;
    }
    MemorySegment setThreads = function("ggml_backend_set_n_threads");
    if (!Native.isNull(setThreads)) {
      ggml_backend_set_n_threads_t.invoke(setThreads, backend, count);
    }
    MemorySegment poolNew = function("ggml_threadpool_new");
    MemorySegment setPool = function("ggml_backend_cpu_set_threadpool");
    if (!Native.isNull(poolNew) && !Native.isNull(setPool)) {
      MemorySegment old = pool;
      pool = newPool(poolNew, count);
      call(SET_POOL, setPool, pool);
      freePool(old);
    }
    threads = count;
  }

  /** Sets what computes ask whether to stop. */
  public void setAbort(@Nullable BooleanSupplier callback) {
    MemorySegment setAbort = function("ggml_backend_set_abort_callback");
    if (Native.isNull(setAbort)) {
      throw new UnsupportedOperationException("this CPU backend cannot be asked to stop");
    }
    abort.set(callback);
    if (callback == null) {
      ggml_backend_set_abort_callback_t.invoke(
          setAbort, backend, MemorySegment.NULL, MemorySegment.NULL);
    } else {
      ggml_backend_set_abort_callback_t.invoke(
          setAbort, backend, AbortSlots.stub(), abort.userData());
    }
  }

  /** What the abort callback threw since this was asked last. */
  public @Nullable Throwable takeThrown() {
    return abort.takeThrown();
  }

  /** Ends the threads. The backend must be freed before: it still knows them. */
  public void free() {
    freePool(pool);
    pool = MemorySegment.NULL;
    abort.free();
  }

  private MemorySegment newPool(MemorySegment poolNew, int count) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = ggml_threadpool_params.allocate(arena);
      ggml_h.ggml_threadpool_params_init(params, count);
      return (MemorySegment) POOL_NEW.invokeExact(poolNew, params);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }

  private void freePool(MemorySegment old) {
    if (Native.isNull(old)) {
      return;
    }
    try {
      POOL_FREE.invokeExact(function("ggml_threadpool_free"), old);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }

  private void call(MethodHandle handle, MemorySegment function, MemorySegment argument) {
    try {
      handle.invokeExact(function, backend, argument);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }

  private MemorySegment function(String name) {
    try (Arena arena = Arena.ofConfined()) {
      return ggml_backend_h.ggml_backend_reg_get_proc_address(registry, arena.allocateFrom(name));
    }
  }
}
