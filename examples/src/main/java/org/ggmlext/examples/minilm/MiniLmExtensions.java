package org.ggmlext.examples.minilm;

import java.util.ArrayDeque;
import java.util.Deque;
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
 * built-in operation computed in Java ({@link GeluErf}, where no product takes it along), an
 * operator with a kernel in C ({@link ResidualNorm}), and the bundled library's products and
 * attention. All users in the process share one registration; the last one to close withdraws it.
 */
final class MiniLmExtensions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MiniLmExtensions.class);

  private static int users;
  private static @Nullable Registered registered;
  private static @Nullable Registration geluErf;
  private static @Nullable LibraryRegistration products;

  // It would take over what the example shows in Java.
  private static final String SWITCHED_OFF = "cpu.gelu_erf";

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
      try {
        registerMissing(layer, cpu);
      } catch (RuntimeException | Error e) {
        try {
          withdrawUnused();
        } catch (RuntimeException stays) {
          e.addSuppressed(stays);
        }
        throw e;
      }
      users++;
      return new MiniLmExtensions();
    }
  }

  private static void registerMissing(Extensions layer, Device cpu) {
    if (registered == null) {
      registered = Registered.on(layer, cpu);
    }
    if (geluErf == null) {
      geluErf = layer.register(cpu, GeluErf.KERNEL);
    }
    if (products == null) {
      products = layer.register(cpu, KernelLibrary.bundled("cpu"));
      products.registrations().stream()
          .filter(registration -> registration.name().equals(SWITCHED_OFF))
          .forEach(registration -> registration.setEnabled(false));
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
      withdrawUnused();
    }
  }

  private static void withdrawUnused() {
    if (users > 0) {
      return;
    }
    if (registered != null) {
      registered.close();
      registered = null;
    }
    withdrawOverrides();
  }

  // Other programs of this process have such operations too, and may be using the overrides.
  private static void withdrawOverrides() {
    if (withdraw(geluErf)) {
      geluErf = null;
    }
    if (withdraw(products)) {
      products = null;
    }
  }

  private static boolean withdraw(@Nullable AutoCloseable override) {
    try {
      if (override != null) {
        override.close();
      }
      return true;
    } catch (IllegalStateException e) {
      LOG.info("an override stays registered: {}", e.getMessage());
      return false;
    } catch (Exception e) {
      throw new AssertionError("registrations throw nothing checked", e);
    }
  }

  /** The operators and their kernels, which no graph but MiniLM's uses. */
  private static final class Registered implements AutoCloseable {
    private final Deque<Runnable> withdrawals = new ArrayDeque<>();

    static Registered on(Extensions layer, Device cpu) {
      KernelLibrary library = KernelLibrary.load(NativeKernels.library());
      Registered all = new Registered();
      try {
        all.withdrawals.push(layer.register(PoolNormalize.OPERATOR)::close);
        all.withdrawals.push(layer.register(cpu, PoolNormalize.KERNEL)::close);
        all.withdrawals.push(layer.register(ResidualNorm.OPERATOR)::close);
        all.withdrawals.push(layer.register(cpu, library)::close);
        return all;
      } catch (RuntimeException | Error e) {
        all.close();
        throw e;
      }
    }

    /** The last one first, since kernels need their operators. */
    @Override
    public void close() {
      withdrawals.forEach(Runnable::run);
    }
  }
}
