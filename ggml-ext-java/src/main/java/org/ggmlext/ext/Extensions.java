package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.ggmlext.Backend;
import org.ggmlext.Device;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.internal.Planning;
import org.ggmlext.internal.RefusedNodes;
import org.ggmlext.internal.callback.Registry;
import org.ggmlext.internal.callback.Registry.Callback;
import org.ggmlext.internal.load.ExtLocator;
import org.jspecify.annotations.Nullable;

/**
 * The extension layer, attached to the loaded ggml. There is one in a process.
 *
 * <p>Its log lines go to the SLF4J logger {@code org.ggmlext.ext}. Safe for use by several threads.
 */
public final class Extensions {
  private static @Nullable Extensions attached;

  private final AbiInfo abi;
  private final Map<Device, String> refusals;

  private Extensions(LayerLoader.Layer layer) {
    this.abi = layer.abi();
    this.refusals = layer.refusals();
  }

  /**
   * Attaches the layer to all devices of ggml. The layer's library is found by the system property
   * {@code ggml.ext.library}, the environment variable {@code GGML_EXT_LIBRARY}, or the natives jar
   * on the class path, in this order.
   *
   * <p>Backends made before are not extended; see {@link #attach(Backend)}.
   *
   * @return the layer; the same object if it is attached already
   * @throws GgmlException if the library is not found or cannot be loaded, or this ggml is not
   *     understood; ggml itself goes on working
   */
  public static Extensions attach(Ggml ggml) {
    return attach(ggml, null);
  }

  /**
   * As {@link #attach(Ggml)}, with the layer's library at a path.
   *
   * @param library the file {@code libggml-ext.so}; null: found in the usual order
   */
  public static synchronized Extensions attach(Ggml ggml, @Nullable Path library) {
    if (attached == null) {
      attached = new Extensions(LayerLoader.load(ggml, ExtLocator.library(library)));
      FlightEvents.start();
      RefusedNodes.explainBy(KernelAnswers::explain);
      Planning.holdAnswersBy(ggml_ext_h::ggml_ext_hold_answers);
    }
    return attached;
  }

  /**
   * The attached layer.
   *
   * @throws IllegalStateException if {@link #attach} has not succeeded yet
   */
  static synchronized Extensions requireAttached() {
    if (attached == null) {
      throw new IllegalStateException("call Extensions.attach(ggml) first");
    }
    return attached;
  }

  /** What the layer found out about this ggml. */
  public AbiInfo abi() {
    return abi;
  }

  /**
   * Devices that could not be extended, and why: for a GPU, that ggml's library has no code which
   * runs on it, for example. ggml uses them as they are.
   */
  public Map<Device, String> refusals() {
    return refusals;
  }

  /**
   * Throws where a device could not be extended.
   *
   * @throws IllegalArgumentException with the reason
   */
  void requireExtended(Device device) {
    String refusal = refusals.get(device);
    if (refusal != null) {
      throw new IllegalArgumentException("a device that cannot be extended: " + refusal);
    }
  }

  /**
   * Extends a backend that was made before the layer was attached. Harmless if it is extended.
   *
   * @throws IllegalStateException if the backend is closed
   */
  public void attach(Backend backend) {
    ExtStatus.check(backend.nativeCall(ggml_ext_h::ggml_ext_attach_backend));
  }

  /**
   * Makes an operator known.
   *
   * @throws IllegalArgumentException if its name is not a versioned name, or taken; what has it
   *     stays; or if a library registers it ({@link Operator#ofLibrary})
   */
  public Registration register(Operator<?> operator) {
    if (operator.isOfLibrary()) {
      throw new IllegalArgumentException(
          operator.name() + " comes from a kernel library: register that on a device");
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(
          Registry.operator(
              new OperatorAdapter(operator),
              operator.name(),
              operator.attributesSize(),
              desc -> ggml_ext_h.ggml_ext_register_op(desc, out)));
      return new Registration(operator.name(), out.get(ValueLayout.ADDRESS, 0));
    }
  }

  /**
   * Gives a device a kernel.
   *
   * @throws IllegalArgumentException if there is no such operation, or the name is taken on this
   *     device; what has it stays; or if its form is not for this device: one in task form or by
   *     rows where the CPU cannot read the device's memory, one that launches CUDA kernels where it
   *     is no attached CUDA device
   */
  public Registration register(Device device, Kernel kernel) {
    return register(device, kernel.definition());
  }

  /**
   * Gives a device a fusion rule.
   *
   * @throws IllegalArgumentException if the first operation is not known, or the name is taken on
   *     this device; what has it stays; or if its form is not for this device, as above
   */
  public Registration register(Device device, FusionRule rule) {
    return register(device, rule.definition());
  }

  /**
   * Gives a device a graph optimiser.
   *
   * @throws IllegalArgumentException if the name is taken on this device; what has it stays
   */
  public Registration register(Device device, GraphOptimizer optimizer) {
    return register(device, optimizer.definition(), Registration.Kind.OPTIMIZER);
  }

  private static Registration register(Device device, Definition definition) {
    return register(device, definition, Registration.Kind.OF_JAVA);
  }

  private static Registration register(
      Device device, Definition definition, Registration.Kind kind) {
    requireAttached().requireExtended(device);
    boolean onHost = device.hasHostMemory();
    if (!onHost && definition.body() instanceof TaskBody) {
      throw new IllegalArgumentException(
          "%s runs on the CPU's threads, which cannot read memory of %s: describe it by launch(), or enqueue work in execute()"
              .formatted(definition.name(), device.name()));
    }
    if (definition.body() instanceof CudaBody) {
      CudaContext.requireCuda(device, definition.name());
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(
          Registry.kernel(
              new KernelAdapter(definition, onHost),
              definition.name(),
              definition.op(),
              definition.priority(),
              callbacks(definition),
              desc ->
                  ggml_ext_h.ggml_ext_register_kernel_ex(
                      device.handle(), desc, definition.flags(), out)));
      return new Registration(definition.name(), out.get(ValueLayout.ADDRESS, 0), kind);
    }
  }

  private static Set<Callback> callbacks(Definition definition) {
    Set<Callback> callbacks = EnumSet.noneOf(Callback.class);
    if (definition.supports() != null) {
      callbacks.add(Callback.SUPPORTS);
    }
    if (definition.preferred() != null) {
      callbacks.add(Callback.PREFERRED);
    }
    if (definition.matcher() != null) {
      callbacks.add(Callback.MATCH);
    }
    if (definition.pass() != null) {
      callbacks.add(Callback.OPTIMIZE);
    }
    if (definition.body() instanceof TaskBody) {
      callbacks.add(Callback.RUN);
    } else if (definition.body() instanceof WholeBody) {
      callbacks.add(Callback.EXECUTE);
    }
    return callbacks;
  }

  /**
   * Gives a device the kernels of a native library.
   *
   * @return one object for all of them
   * @throws GgmlException if the library refuses, with its message; nothing stays registered
   * @throws IllegalArgumentException if the device could not be extended
   */
  public LibraryRegistration register(Device device, KernelLibrary library) {
    requireExtended(device);
    return library.register(device);
  }

  /**
   * Whether the device itself, without extensions, can compute a node.
   *
   * @throws IllegalStateException if the node's context, or that of a tensor which it is made of,
   *     is closed
   */
  public boolean supportsNatively(Device device, Tensor node) {
    return node.nativeCall(
        tensor -> ggml_ext_h.ggml_ext_dev_supports_native_op(device.handle(), tensor));
  }

  /**
   * What a device would do with a node by itself: the extension or the native kernel that would
   * compute it, in a plan of one step, or of none where nothing would, with the reason of each
   * kernel that would not. Asks the kernels, and computes nothing.
   *
   * @throws IllegalArgumentException if the device is not extended
   * @throws IllegalStateException if the node's context, or that of a tensor which it is made of,
   *     is closed
   */
  public Plan plan(Device device, Tensor node) {
    requireExtended(device);
    return node.nativeCall(tensor -> PlanReader.single(device.handle(), tensor));
  }

  /**
   * What a backend does now with the graphs that it was given, the most recent first.
   *
   * @throws IllegalStateException if the backend is closed
   */
  public List<Plan> plans(Backend backend) {
    return backend.nativeCall(PlanReader::plans);
  }

  /**
   * Counters of a backend.
   *
   * @throws IllegalStateException if the backend is closed
   */
  public BackendStats stats(Backend backend) {
    return backend.nativeCall(BackendStatsReader::stats);
  }

  /** Switches the measuring of times on or off; takes effect at the next compute. */
  public void setProfiling(boolean enabled) {
    ggml_ext_h.ggml_ext_set_profiling(enabled);
  }
}
