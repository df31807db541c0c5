package org.ggmlext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.Native;

/**
 * Something that computes: the CPU, a GPU. Devices live as long as the process.
 *
 * <p>Safe for use by several threads.
 */
public final class Device {
  private final MemorySegment handle;
  private final String name;
  private final DeviceType type;

  Device(MemorySegment handle) {
    this.handle = handle;
    this.name = Native.string(ggml_backend_h.ggml_backend_dev_name(handle));
    this.type = DeviceType.of(ggml_backend_h.ggml_backend_dev_type(handle));
  }

  /** The name, such as {@code CPU} or {@code CUDA0}. */
  public String name() {
    return name;
  }

  /** What the device calls itself, such as the processor's model name. */
  public String description() {
    return Native.string(ggml_backend_h.ggml_backend_dev_description(handle));
  }

  /** The kind of device. */
  public DeviceType type() {
    return type;
  }

  /** Whether the CPU can read and write the memory that the device computes in. */
  public boolean hasHostMemory() {
    return ggml_backend_h.ggml_backend_buft_is_host(
        ggml_backend_h.ggml_backend_dev_buffer_type(handle));
  }

  /** The device's memory now. */
  public Memory memory() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment free = arena.allocate(ValueLayout.JAVA_LONG);
      MemorySegment total = arena.allocate(ValueLayout.JAVA_LONG);
      ggml_backend_h.ggml_backend_dev_memory(handle, free, total);
      return new Memory(free.get(ValueLayout.JAVA_LONG, 0), total.get(ValueLayout.JAVA_LONG, 0));
    }
  }

  /**
   * Whether this device can compute a node: what ggml itself asks, so it includes extensions that
   * are registered for the device.
   *
   * @throws IllegalStateException if the tensor's context, or that of one which it is made of, is
   *     closed
   */
  public boolean supportsOp(Tensor node) {
    return node.nativeCall(tensor -> ggml_backend_h.ggml_backend_dev_supports_op(handle, tensor));
  }

  /**
   * A new backend of this device, which the caller closes. A CPU backend keeps its threads (as many
   * as there are cores) until it is freed.
   *
   * @throws GgmlException if the device makes none
   */
  public Backend newBackend() {
    return Backend.create(this);
  }

  /** The {@code ggml_backend_dev_t}, for code that calls ggml's C functions itself. */
  public MemorySegment handle() {
    return handle;
  }

  @Override
  public String toString() {
    return name;
  }

  /**
   * Memory of a device.
   *
   * @param free bytes that are free
   * @param total bytes in all; 0 where the device does not say
   */
  public record Memory(long free, long total) {}
}
