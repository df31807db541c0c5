package org.ggmlext.examples.minilm;

import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.LibraryRegistration;
import org.ggmlext.ext.Registration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What MiniLM adds to ggml's CPU: an operator with a kernel in Java ({@link PoolNormalize}), a
 * built-in operation computed in Java ({@link GeluErf}), and an operator with a kernel in C ({@link
 * ResidualNorm}). All users in the process share one registration; the last one to close withdraws
 * it.
 */
final class MiniLmExtensions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MiniLmExtensions.class);

  private static int users;
  private static @Nullable Registered registered;
  private static @Nullable Registration geluErf;

  private boolean closed;

  private MiniLmExtensions() {}

  /**
   * Registers the extensions, where this process has not done so yet. Close what uses them first,
   * then this.
   *
   * @throws org.ggmlext.GgmlException if the layer cannot be attached, or the C kernel's library
   *     not loaded
   */
  static MiniLmExtensions register(Ggml ggml) {
    synchronized (MiniLmExtensions.class) {
      Extensions layer = Extensions.attach(ggml);
      Device cpu = ggml.device(DeviceType.CPU);
      if (registered == null) {
        registered = Registered.on(layer, cpu);
      }
      if (geluErf == null) {
        geluErf = layer.register(cpu, GeluErf.KERNEL);
      }
      users++;
      return new MiniLmExtensions();
    }
  }

  @Override
  public void close() {
    synchronized (MiniLmExtensions.class) {
      if (closed) {
        return;
      }
      closed = true;
      users--;
      if (users == 0 && registered != null) {
        registered.close();
        registered = null;
        withdrawOverride();
      }
    }
  }

  // Other programs of this process have graphs with GELU_ERF too, and may be using the override.
  private static void withdrawOverride() {
    if (geluErf == null) {
      return;
    }
    try {
      geluErf.close();
      geluErf = null;
    } catch (IllegalStateException e) {
      LOG.info("{} stays registered: {}", geluErf.name(), e.getMessage());
    }
  }

  /** The operators and their kernels, which no graph but MiniLM's uses. */
  private record Registered(
      Registration pool, Registration poolKernel, Registration norm, LibraryRegistration normKernel)
      implements AutoCloseable {

    static Registered on(Extensions layer, Device cpu) {
      KernelLibrary library = KernelLibrary.load(NativeKernels.library());
      Registration pool = layer.register(PoolNormalize.OPERATOR);
      Registration poolKernel = layer.register(cpu, PoolNormalize.KERNEL);
      Registration norm = layer.register(ResidualNorm.OPERATOR);
      LibraryRegistration normKernel = layer.register(cpu, library);
      return new Registered(pool, poolKernel, norm, normKernel);
    }

    @Override
    public void close() {
      normKernel.close();
      norm.close();
      poolKernel.close();
      pool.close();
    }
  }
}
