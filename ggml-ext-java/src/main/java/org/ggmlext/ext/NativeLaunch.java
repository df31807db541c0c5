package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.ggmlext.bindings.ggml_ext_cuda_launch_params;
import org.ggmlext.bindings.ggml_ext_h;

/** A launch as C reads it. All is made once; a call fills in the addresses that it has now. */
final class NativeLaunch {
  private static final long ALIGNMENT = 16; // the strictest of CUDA's own types

  private final CudaModule module;
  private final MemorySegment params;
  private final List<CudaArgument> arguments;
  private final MemorySegment[] values;

  /**
   * Lays a launch out.
   *
   * @param arena holds it; the launch is of no use afterwards
   */
  NativeLaunch(CudaLaunch launch, Arena arena) {
    CudaFunction function = launch.function();
    module = function.module();
    arguments = launch.arguments();
    int count = arguments.size();
    MemorySegment pointers = arena.allocate(ValueLayout.ADDRESS, Math.max(1, count));
    MemorySegment sizes = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, count));
    values = new MemorySegment[count];
    for (int i = 0; i < count; i++) {
      CudaArgument argument = arguments.get(i);
      values[i] = arena.allocate(argument.size(), ALIGNMENT);
      if (argument instanceof CudaArgument.Value value) {
        value.writeTo(values[i]);
      }
      pointers.setAtIndex(ValueLayout.ADDRESS, i, values[i]);
      sizes.setAtIndex(ValueLayout.JAVA_LONG, i, argument.size());
    }
    params = ggml_ext_cuda_launch_params.allocate(arena);
    ggml_ext_cuda_launch_params.struct_size(params, params.byteSize());
    ggml_ext_cuda_launch_params.module(params, module.handle());
    ggml_ext_cuda_launch_params.function(params, arena.allocateFrom(function.name()));
    put(ggml_ext_cuda_launch_params.grid(params), launch.grid());
    put(ggml_ext_cuda_launch_params.block(params), launch.block());
    ggml_ext_cuda_launch_params.shared_memory(params, launch.sharedMemory());
    ggml_ext_cuda_launch_params.n_args(params, count);
    ggml_ext_cuda_launch_params.args(params, pointers);
    ggml_ext_cuda_launch_params.arg_sizes(params, sizes);
    ggml_ext_cuda_launch_params.flags(
        params, launch.early() ? ggml_ext_h.GGML_EXT_CUDA_LAUNCH_EARLY() : 0);
  }

  private static void put(MemorySegment array, Dim3 extents) {
    array.setAtIndex(ValueLayout.JAVA_INT, 0, extents.x());
    array.setAtIndex(ValueLayout.JAVA_INT, 1, extents.y());
    array.setAtIndex(ValueLayout.JAVA_INT, 2, extents.z());
  }

  /**
   * Launches.
   *
   * @throws IllegalStateException if the module is closed
   */
  void run(Execution execution) {
    for (int i = 0; i < values.length; i++) {
      switch (arguments.get(i)) {
        case CudaArgument.Output _ -> setAddress(i, execution.dst().address());
        case CudaArgument.Source(int index) -> setAddress(i, execution.src(index).address());
        case CudaArgument.Captured(Capture capture) ->
            setAddress(i, execution.tensor(capture).address());
        case CudaArgument.Workspace(long offset) ->
            setAddress(i, execution.workspaceAddress() + offset);
        case CudaArgument.Value _ -> {}
      }
    }
    module.begin();
    try {
      ExtStatus.check(ggml_ext_h.ggml_ext_cuda_launch(execution.backend(), params));
    } finally {
      module.end();
    }
  }

  private void setAddress(int index, long address) {
    values[index].set(ValueLayout.JAVA_LONG, 0, address);
  }
}
