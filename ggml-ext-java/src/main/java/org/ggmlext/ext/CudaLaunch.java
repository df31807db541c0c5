package org.ggmlext.ext;

import java.util.List;

/**
 * A launch of a CUDA kernel: over which grid, with which arguments. Number and sizes of the
 * arguments are checked against the function's parameters; what the function does with them is not.
 *
 * @param function the kernel
 * @param grid blocks; at most 65,535 along y and z
 * @param block threads of a block; at most the function's {@link CudaFunction#maxThreadsPerBlock}
 * @param sharedMemory bytes of dynamic shared memory of each block
 * @param arguments the function's arguments, in their order
 * @param early whether the kernel may begin while the one in front of it ends, see {@link
 *     #withEarlyBegin}
 */
public record CudaLaunch(
    CudaFunction function,
    Dim3 grid,
    Dim3 block,
    int sharedMemory,
    List<CudaArgument> arguments,
    boolean early) {
  private static final int MAX_GRID_YZ = 65_535;
  private static final int MAX_BLOCK_Z = 64;

  /**
   * A launch.
   *
   * @throws IllegalArgumentException if grid, block or arguments do not suit the function; the
   *     message names the argument
   */
  public CudaLaunch {
    arguments = List.copyOf(arguments);
    if (grid.y() > MAX_GRID_YZ || grid.z() > MAX_GRID_YZ) {
      throw new IllegalArgumentException(
          "%s: a grid of %s blocks, expected at most %d along y and z"
              .formatted(function.name(), grid, MAX_GRID_YZ));
    }
    if (block.volume() > function.maxThreadsPerBlock() || block.z() > MAX_BLOCK_Z) {
      throw new IllegalArgumentException(
          "%s: a block of %s threads, expected at most %d in all and %d along z"
              .formatted(function.name(), block, function.maxThreadsPerBlock(), MAX_BLOCK_Z));
    }
    if (sharedMemory < 0) {
      throw new IllegalArgumentException(
          "%s: sharedMemory is %d, expected >= 0".formatted(function.name(), sharedMemory));
    }
    check(function, arguments);
  }

  private static void check(CudaFunction function, List<CudaArgument> arguments) {
    List<Long> sizes = function.parameterSizes();
    if (arguments.size() != sizes.size()) {
      throw new IllegalArgumentException(
          "%s has %d parameters, of %s bytes, but got %d arguments: %s"
              .formatted(function.name(), sizes.size(), sizes, arguments.size(), arguments));
    }
    for (int i = 0; i < sizes.size(); i++) {
      CudaArgument argument = arguments.get(i);
      if (argument.size() != sizes.get(i)) {
        throw new IllegalArgumentException(
            "%s: argument %d, %s, has %d bytes, but the parameter has %d"
                .formatted(function.name(), i, argument, argument.size(), sizes.get(i)));
      }
    }
  }

  /** A launch without dynamic shared memory. */
  public static CudaLaunch of(
      CudaFunction function, Dim3 grid, Dim3 block, CudaArgument... arguments) {
    return new CudaLaunch(function, grid, block, 0, List.of(arguments), false);
  }

  /** The same with so many bytes of dynamic shared memory for each block. */
  public CudaLaunch withSharedMemory(int bytes) {
    return new CudaLaunch(function, grid, block, bytes, arguments, early);
  }

  /**
   * The same for a kernel each of whose threads executes {@code griddepcontrol.wait} ({@code
   * cudaGridDependencySynchronize()}) before it reads or writes memory: it may begin while the
   * kernel in front of it ends. It does so on GPUs of compute capability 9 and later, if its code
   * was compiled for one; elsewhere this has no effect. A kernel that does not wait computes from
   * what is not written yet.
   */
  public CudaLaunch withEarlyBegin() {
    return new CudaLaunch(function, grid, block, sharedMemory, arguments, true);
  }

  /**
   * Checks that the step has the tensors and the scratch memory that the arguments mean.
   *
   * @throws IllegalArgumentException if it does not
   */
  void checkTensors(PrepareContext context, long workspaceBytes) {
    for (CudaArgument argument : arguments) {
      boolean there =
          switch (argument) {
            case CudaArgument.Source(int index) -> context.node().hasSrc(index);
            case CudaArgument.Captured(Capture capture) -> has(context.nodes(), capture);
            case CudaArgument.Workspace(long offset) -> offset < workspaceBytes;
            case CudaArgument.Output _, CudaArgument.Value _ -> true;
          };
      if (!there) {
        throw new IllegalArgumentException(
            "%s: the step has no %s; it has nodes %s and %d bytes of scratch memory"
                .formatted(function.name(), argument, context.nodes(), workspaceBytes));
      }
    }
  }

  private static boolean has(List<NodeInfo> nodes, Capture capture) {
    int node = capture.node();
    return node < nodes.size() && (capture.isOutput() || nodes.get(node).hasSrc(capture.src()));
  }
}
