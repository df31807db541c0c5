package org.ggmlext.ext;

import java.util.List;

/**
 * What a planned step launches on the GPU.
 *
 * @param launches in their order, at least one; each begins when the one before it has ended
 * @param workspaceBytes bytes of scratch memory on the device; aligned to 128 bytes, contents
 *     undefined at the start of each execution
 */
public record CudaStep(List<CudaLaunch> launches, long workspaceBytes) {
  public CudaStep {
    launches = List.copyOf(launches);
    if (launches.isEmpty()) {
      throw new IllegalArgumentException("a step without a launch, expected at least one");
    }
    if (workspaceBytes < 0) {
      throw new IllegalArgumentException("workspaceBytes is " + workspaceBytes + ", expected >= 0");
    }
  }

  /** These launches, without scratch memory. */
  public static CudaStep of(CudaLaunch... launches) {
    return new CudaStep(List.of(launches), 0);
  }

  /** The same with so many bytes of scratch memory. */
  public CudaStep withWorkspace(long bytes) {
    return new CudaStep(launches, bytes);
  }
}
