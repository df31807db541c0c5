package org.ggmlext;

import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_alloc_h;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.WrittenMemory;

/**
 * Memory of a device that holds the data of a context's tensors. It belongs to that context and is
 * freed with it.
 */
public final class Buffer {
  private final Context context;
  private final Device device;
  private final MemorySegment handle;

  private Buffer(Context context, Device device, MemorySegment handle) {
    this.context = context;
    this.device = device;
    this.handle = handle;
  }

  /** The context is held, and its lock. */
  static Buffer allocate(Context context, MemorySegment ctx, Device device) {
    boolean needed = false;
    MemorySegment next = ggml_h.ggml_get_first_tensor(ctx);
    while (!Native.isNull(next)) {
      long root = Native.viewSrc(next.address());
      if (root == 0) {
        needed |= Native.buffer(next.address()) == 0;
      } else if (!context.owns(root) && Native.buffer(root) == 0) {
        throw new IllegalStateException(
            "the tensor \"%s\" is a view of \"%s\" in another context, which has no memory yet"
                .formatted(Native.name(next.address()), Native.name(root)));
      }
      next = ggml_h.ggml_get_next_tensor(ctx, next);
    }
    if (!needed) {
      throw new GgmlException("no tensor of the context needs memory");
    }
    MemorySegment type = ggml_backend_h.ggml_backend_dev_buffer_type(device.handle());
    MemorySegment handle = ggml_alloc_h.ggml_backend_alloc_ctx_tensors_from_buft(ctx, type);
    if (Native.isNull(handle)) {
      throw new GgmlException(
          "the device %s has no memory for the context's tensors".formatted(device.name()));
    }
    return new Buffer(context, device, handle);
  }

  /** The device whose memory this is. */
  public Device device() {
    return device;
  }

  /**
   * Bytes of the buffer.
   *
   * @throws IllegalStateException if the context is closed
   */
  public long size() {
    try (Context.Hold _ = context.hold()) {
      return ggml_backend_h.ggml_backend_buffer_get_size(handle);
    }
  }

  /**
   * Marks the buffer as one of weights: a scheduler then prefers to compute where they are.
   *
   * @return this
   * @throws IllegalStateException if the context is closed
   */
  public Buffer asWeights() {
    try (Context.Hold _ = context.hold()) {
      ggml_backend_h.ggml_backend_buffer_set_usage(
          handle, ggml_backend_h.GGML_BACKEND_BUFFER_USAGE_WEIGHTS());
      return this;
    }
  }

  /**
   * Sets every byte.
   *
   * @return this
   * @throws IllegalStateException if the context is closed
   */
  public Buffer fill(byte value) {
    try (Context.Hold _ = context.hold()) {
      ggml_backend_h.ggml_backend_buffer_clear(handle, value);
      if (ggml_backend_h.ggml_backend_buffer_is_host(handle)) {
        WrittenMemory.report(
            ggml_backend_h.ggml_backend_buffer_get_base(handle).reinterpret(size()));
      }
      return this;
    }
  }

  void free() {
    ggml_backend_h.ggml_backend_buffer_free(handle);
  }
}
