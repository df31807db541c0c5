package org.ggmlext.ext;

import java.util.List;

/** A kernel of a {@link CudaModule}, and what is known of its code on the module's device. */
public final class CudaFunction {
  private final CudaModule module;
  private final String name;
  private final List<Long> parameterSizes;
  private final int maxThreadsPerBlock;
  private final int registers;
  private final long staticSharedMemory;
  private final long localMemory;

  CudaFunction(
      CudaModule module,
      String name,
      List<Long> parameterSizes,
      int maxThreadsPerBlock,
      int registers,
      long staticSharedMemory,
      long localMemory) {
    this.module = module;
    this.name = name;
    this.parameterSizes = List.copyOf(parameterSizes);
    this.maxThreadsPerBlock = maxThreadsPerBlock;
    this.registers = registers;
    this.staticSharedMemory = staticSharedMemory;
    this.localMemory = localMemory;
  }

  /** The module that it is part of. */
  public CudaModule module() {
    return module;
  }

  /** Its name in the module. */
  public String name() {
    return name;
  }

  /** Sizes of its parameters in bytes, in their order. */
  public List<Long> parameterSizes() {
    return parameterSizes;
  }

  /** How many threads a block may have. */
  public int maxThreadsPerBlock() {
    return maxThreadsPerBlock;
  }

  /** Registers of each thread. */
  public int registers() {
    return registers;
  }

  /** Shared memory of each block that the code itself declares, in bytes. */
  public long staticSharedMemory() {
    return staticSharedMemory;
  }

  /** Local memory of each thread, in bytes. */
  public long localMemory() {
    return localMemory;
  }

  /** Such as {@code cube[8, 8, 4] of CUDA module on CUDA0}. */
  @Override
  public String toString() {
    return name + parameterSizes + " of " + module;
  }
}
