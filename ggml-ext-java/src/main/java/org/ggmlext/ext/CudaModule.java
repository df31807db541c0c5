package org.ggmlext.ext;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.ggmlext.Device;
import org.ggmlext.GgmlException;
import org.ggmlext.bindings.ggml_ext_cuda_function_info;
import org.ggmlext.bindings.ggml_ext_cuda_source;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.CString;
import org.ggmlext.internal.Lifetime;
import org.ggmlext.internal.MappedFault;

/**
 * CUDA kernels in machine code for one device: compiled from source text here and now, or ahead of
 * time and loaded. Its functions are launched by kernels and fusion rules that are described with
 * {@link StepBuilder#launch}, or through {@link Execution#cuda}.
 *
 * <p>Modules are made outside of kernels; they hold memory of the device until they are closed, and
 * must be open as long as their functions are launched. What a backend has recorded of them goes on
 * replaying: the code stays on the device until all backends that launched it are closed.
 *
 * <p>Safe for use by several threads.
 */
public final class CudaModule implements AutoCloseable {
  private final String name;
  private final MemorySegment handle;
  private final Lifetime lifetime;

  private CudaModule(Device device, MemorySegment handle) {
    this.name = "CUDA module on " + device.name();
    this.handle = handle;
    this.lifetime =
        new Lifetime(name, () -> ExtStatus.check(ggml_ext_h.ggml_ext_cuda_module_free(handle)));
  }

  /**
   * Compiles CUDA C++ for a device by NVRTC, which is looked for at the first call.
   *
   * @param device an attached CUDA device
   * @param source CUDA C++ text; functions that are asked for by name are declared {@code extern
   *     "C" __global__}
   * @param options NVRTC's, such as {@code "--use_fast_math"}; the architecture is the device's
   * @throws IllegalArgumentException if the device is no attached CUDA device
   * @throws GgmlException if the text does not compile, with the compiler's log; or if there is no
   *     NVRTC, or it cannot compile for this device
   */
  public static CudaModule compile(Device device, String source, String... options) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment texts = arena.allocate(ValueLayout.ADDRESS, Math.max(1, options.length));
      for (int i = 0; i < options.length; i++) {
        texts.setAtIndex(ValueLayout.ADDRESS, i, CString.allocate(arena, "option", options[i]));
      }
      MemorySegment params = ggml_ext_cuda_source.allocate(arena);
      ggml_ext_cuda_source.struct_size(params, params.byteSize());
      ggml_ext_cuda_source.text(params, CString.allocate(arena, "the source", source));
      ggml_ext_cuda_source.n_options(params, options.length);
      ggml_ext_cuda_source.options(params, texts);
      return make(
          device, out -> ggml_ext_h.ggml_ext_cuda_module_compile(device.handle(), params, out));
    }
  }

  /**
   * Loads kernels that were compiled ahead of time.
   *
   * @param device an attached CUDA device
   * @param image the bytes of a cubin, of a fat binary, or of PTX text
   * @throws IllegalArgumentException if the device is no attached CUDA device, or the bytes are
   *     none of these
   * @throws GgmlException if the driver cannot use it, such as machine code for another
   *     architecture
   */
  public static CudaModule load(Device device, byte[] image) {
    return load(device, MemorySegment.ofArray(image));
  }

  /**
   * As {@link #load(Device, byte[])}.
   *
   * @param image is copied
   * @throws GgmlException if it is in a mapped file that was cut short
   */
  public static CudaModule load(Device device, MemorySegment image) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = image;
      if (!image.isNative() || image.isMapped()) {
        // A fault in mapped memory would end the process, were it native code that reads it.
        bytes = arena.allocate(Math.max(1, image.byteSize()), Long.BYTES);
        try {
          bytes.copyFrom(image);
        } catch (InternalError e) {
          throw MappedFault.whileReading("the file with the image of a module", e);
        }
      }
      MemorySegment address = bytes;
      return make(
          device,
          out ->
              ggml_ext_h.ggml_ext_cuda_module_load(
                  device.handle(), address, image.byteSize(), out));
    }
  }

  /**
   * As {@link #load(Device, byte[])}.
   *
   * @param file a file of these bytes
   * @throws IOException if the file cannot be read
   */
  public static CudaModule load(Device device, Path file) throws IOException {
    try (Arena arena = Arena.ofConfined();
        FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      return load(device, channel.map(MapMode.READ_ONLY, 0, channel.size(), arena));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(file + ": " + e.getMessage(), e);
    } catch (GgmlException e) {
      throw new GgmlException(file + ": " + e.getMessage(), e);
    }
  }

  private static CudaModule make(Device device, ToIntFunction<MemorySegment> function) {
    Extensions.requireAttached().requireExtended(device);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(function.applyAsInt(out));
      return new CudaModule(device, out.get(ValueLayout.ADDRESS, 0));
    }
  }

  /**
   * A kernel of the module.
   *
   * @param name as the machine code has it: the plain name of a function declared {@code extern
   *     "C"}
   * @throws IllegalArgumentException if the module has no such kernel
   * @throws IllegalStateException if the module is closed
   */
  public CudaFunction function(String name) {
    lifetime.begin();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment info = ggml_ext_cuda_function_info.allocate(arena);
      ggml_ext_cuda_function_info.struct_size(info, info.byteSize());
      ExtStatus.check(
          ggml_ext_h.ggml_ext_cuda_module_get_function(
              handle, CString.allocate(arena, "the function's name", name), info));
      return new CudaFunction(
          this,
          name,
          parameterSizes(info),
          ggml_ext_cuda_function_info.max_threads_per_block(info),
          ggml_ext_cuda_function_info.n_registers(info),
          ggml_ext_cuda_function_info.static_shared_memory(info),
          ggml_ext_cuda_function_info.local_memory(info));
    } finally {
      lifetime.end();
    }
  }

  private static List<Long> parameterSizes(MemorySegment info) {
    int count = ggml_ext_cuda_function_info.n_params(info);
    MemorySegment sizes =
        ggml_ext_cuda_function_info.param_sizes(info).reinterpret(count * (long) Long.BYTES);
    List<Long> list = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      list.add(sizes.getAtIndex(ValueLayout.JAVA_LONG, i));
    }
    return list;
  }

  /** The C handle. Whoever calls C with it is between {@link #begin} and {@link #end}. */
  MemorySegment handle() {
    return handle;
  }

  void begin() {
    lifetime.begin();
  }

  void end() {
    lifetime.end();
  }

  /** Whether it has been closed. */
  public boolean isClosed() {
    return lifetime.isClosed();
  }

  /** Closes it. Harmless if done before. */
  @Override
  public void close() {
    lifetime.close();
  }

  @Override
  public String toString() {
    return name + (isClosed() ? " (closed)" : "");
  }
}
