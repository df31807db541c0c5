package org.ggmlext;

/** Kinds of devices, as ggml tells them apart. */
public enum DeviceType {
  /** The CPU, on system memory. */
  CPU,
  /** A GPU with its own memory. */
  GPU,
  /** A GPU that is part of the CPU and uses system memory. */
  INTEGRATED_GPU,
  /** An accelerator that works beside the CPU backend, such as BLAS. */
  ACCELERATOR,
  /** A device made of several others. */
  META,
  /** A kind that this library does not know. */
  OTHER;

  static DeviceType of(int value) {
    return value >= 0 && value < OTHER.ordinal() ? values()[value] : OTHER;
  }
}
