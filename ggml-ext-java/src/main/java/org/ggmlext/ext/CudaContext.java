package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.Device;
import org.ggmlext.GgmlException;
import org.ggmlext.bindings.ggml_ext_cuda_blas_v1_t;
import org.ggmlext.bindings.ggml_ext_cuda_context;
import org.ggmlext.bindings.ggml_ext_cuda_context_v1_t;
import org.ggmlext.bindings.ggml_ext_h;

/**
 * The GPU, for the kernel that is running. Valid during the call that got it, and on its thread
 * only.
 *
 * <p>A kernel enqueues its work on the stream, and never waits for it. Events order the stream with
 * ggml's own work.
 */
public final class CudaContext {
  private static final String CONTEXT = "ggml_ext_cuda_context_v1";
  private static final String BLAS = "ggml_ext_cuda_blas_v1";

  private final Execution execution;
  private final int device;
  private final long stream;

  private CudaContext(Execution execution, int device, long stream) {
    this.execution = execution;
    this.device = device;
    this.stream = stream;
  }

  static CudaContext of(Execution execution) {
    MemorySegment service = service(execution, CONTEXT);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = ggml_ext_cuda_context.allocate(arena);
      ggml_ext_cuda_context.struct_size(out, out.byteSize());
      ExtStatus.check(ggml_ext_cuda_context_v1_t.invoke(service, execution.backend(), out));
      return new CudaContext(
          execution,
          ggml_ext_cuda_context.device(out),
          ggml_ext_cuda_context.stream(out).address());
    }
  }

  private static MemorySegment service(Execution execution, String name) {
    MemorySegment service = Services.ofBackend(execution.backend(), name);
    if (service.address() == 0) {
      throw new IllegalStateException(
          "the backend is no CUDA backend: "
              + ExtStatus.message(ggml_ext_h.GGML_EXT_STATUS_NOT_FOUND()));
    }
    return service;
  }

  /**
   * Checks that a device can launch CUDA kernels.
   *
   * @throws IllegalArgumentException if it is no attached CUDA device
   */
  static void requireCuda(Device device, String kernel) {
    if (Services.ofDevice(device.handle(), CONTEXT).address() == 0) {
      throw new IllegalArgumentException(
          "%s launches CUDA kernels, but %s is no attached CUDA device: %s"
              .formatted(
                  kernel,
                  device.name(),
                  ExtStatus.message(ggml_ext_h.GGML_EXT_STATUS_NOT_FOUND())));
    }
  }

  /** The physical number of the device. */
  public int device() {
    execution.check();
    return device;
  }

  /** Address of the {@code cudaStream_t} (or {@code CUstream}) to enqueue work on. */
  public long stream() {
    execution.check();
    return stream;
  }

  /**
   * Launches a kernel on the stream.
   *
   * @param launch its addresses are those of the step that is running
   * @throws IllegalArgumentException if it means a tensor, or scratch memory, that the step does
   *     not have, or belongs to another device
   * @throws IllegalStateException if the call is over, or the module is closed
   * @throws GgmlException if the driver refuses
   */
  public void launch(CudaLaunch launch) {
    execution.check();
    launch.checkTensors(execution.planned.context(), execution.planned.workspaceBytes());
    try (Arena arena = Arena.ofConfined()) {
      new NativeLaunch(launch, arena).run(execution);
    }
  }

  /**
   * Address of a {@code cublasHandle_t} on the stream, with scalars in host memory. The layer owns
   * it: do not keep it, and leave its stream, its modes and its workspace alone.
   *
   * @throws GgmlException if there is no cuBLAS; or if this is the backend's first use of it, and a
   *     CUDA graph is being recorded
   * @throws IllegalStateException if the call is over
   */
  public long blas() {
    execution.check();
    MemorySegment service = service(execution, BLAS);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(ggml_ext_cuda_blas_v1_t.invoke(service, execution.backend(), out));
      return out.get(ValueLayout.ADDRESS, 0).address();
    }
  }
}
