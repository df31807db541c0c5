package org.ggmlext.ext;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.ggmlext.bindings.ggml_ext_cpu_parallel_v1_t;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.callback.CallbackThreads;
import org.ggmlext.internal.callback.ParallelTarget;
import org.ggmlext.internal.callback.Registry;
import org.ggmlext.internal.callback.Stubs;
import org.jspecify.annotations.Nullable;

/** Asks the layer's parallel service to run a task. */
final class CpuParallel {
  private static final String SERVICE = "ggml_ext_cpu_parallel_v1";

  private CpuParallel() {}

  static void run(MemorySegment backend, ParallelTask task) throws Exception {
    MemorySegment service = service(backend);
    Call call = new Call(task);
    int status =
        Registry.parallel(
            call,
            slot ->
                ggml_ext_cpu_parallel_v1_t.invoke(
                    service, backend, Stubs.PARALLEL_TASK, MemorySegment.ofAddress(slot)));
    call.rethrow();
    if (status == ggml_ext_h.GGML_EXT_STATUS_ABORTED()) {
      throw new IllegalStateException("the backend's abort callback asked to stop");
    }
    ExtStatus.check(status);
  }

  private static MemorySegment service(MemorySegment backend) {
    MemorySegment service = Services.ofBackend(backend, SERVICE);
    if (service.address() == 0) {
      throw new IllegalStateException(
          "the backend offers no " + SERVICE + "; only an attached CPU backend does");
    }
    return service;
  }

  /** Neither an exception nor an error is possible, too: the compiler alone forbids it. */
  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
    throw (T) thrown;
  }

  private static final class Call implements ParallelTarget {
    private final ParallelTask task;
    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

    Call(ParallelTask task) {
      this.task = task;
    }

    @Override
    public void run(int ith, int nth) throws Exception {
      CallbackThreads.adopt();
      task.run(ith, nth);
    }

    @Override
    public void failed(Throwable thrown) {
      failure.compareAndSet(null, thrown);
    }

    /** The object itself, not wrapped: it becomes the cause of what compute throws. */
    void rethrow() throws Exception {
      Throwable thrown = failure.get();
      if (thrown != null) {
        throw CpuParallel.<Exception>unchecked(thrown);
      }
    }
  }
}
