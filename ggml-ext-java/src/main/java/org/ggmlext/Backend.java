package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.ComputeFailure;
import org.ggmlext.internal.ComputeWatch;
import org.ggmlext.internal.CpuControl;
import org.ggmlext.internal.Lifetime;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.callback.Computing;
import org.jspecify.annotations.Nullable;

/**
 * A stream of work on a device.
 *
 * <p>Safe for use by several threads; computes of one backend run one after the other. To compute
 * in parallel on one device, make several backends. A scheduler keeps its backends until it is
 * freed itself, so the order in which both are closed does not matter.
 */
public final class Backend implements AutoCloseable {
  private static final AtomicLong COUNT = new AtomicLong();

  private final Device device;
  private final MemorySegment handle;
  private final long id = COUNT.incrementAndGet();
  private final ReentrantLock lock = new ReentrantLock();
  private final @Nullable CpuControl cpu;
  private final Lifetime lifetime;

  private Backend(Device device, MemorySegment handle) {
    this.device = device;
    this.handle = handle;
    this.cpu = device.type() == DeviceType.CPU ? CpuControl.of(device.handle(), handle) : null;
    this.lifetime = new Lifetime("the backend " + device.name(), this::free);
  }

  static Backend create(Device device) {
    MemorySegment handle =
        ggml_backend_h.ggml_backend_dev_init(device.handle(), MemorySegment.NULL);
    if (Native.isNull(handle)) {
      throw new GgmlException("the device " + device.name() + " makes no backend");
    }
    Backend backend = new Backend(device, handle);
    if (backend.cpu != null) {
      backend.cpu.setThreads(Runtime.getRuntime().availableProcessors());
    }
    return backend;
  }

  /** The device that this computes on. */
  public Device device() {
    return device;
  }

  /** The backend's name, such as {@code CPU}. */
  public String name() {
    begin();
    try {
      return Native.string(ggml_backend_h.ggml_backend_name(handle));
    } finally {
      end();
    }
  }

  /**
   * Threads that a CPU backend computes with; 1 for other backends.
   *
   * @throws IllegalStateException if the backend is closed
   */
  public int threads() {
    lifetime.check();
    return cpu == null ? 1 : cpu.threads();
  }

  /**
   * Sets the number of threads of a CPU backend, its own persistent ones. More than there are cores
   * make every node wait for a thread that does not run; so there are at most as many as cores.
   *
   * @param threads at least 1; more than cores count as cores
   * @return this
   * @throws IllegalArgumentException if it is less than 1
   * @throws UnsupportedOperationException if this is no CPU backend
   * @throws IllegalStateException if the backend is closed, or this is called from within its
   *     planning or a compute of it
   */
  public Backend threads(int threads) {
    if (threads < 1) {
      throw new IllegalArgumentException("a backend needs at least 1 thread, not " + threads);
    }
    if (cpu == null) {
      throw new UnsupportedOperationException(
          "the threads of " + device.name() + " cannot be set: it is no CPU");
    }
    beginExclusive();
    try {
      cpu.setThreads(Math.min(threads, Runtime.getRuntime().availableProcessors()));
      return this;
    } finally {
      endExclusive();
    }
  }

  /**
   * Sets what is asked now and then during a compute whether to give up; the compute then throws a
   * {@link GgmlException}. What it throws aborts as well and becomes the cause. It is called on a
   * thread of ggml.
   *
   * @param abort null: never give up
   * @return this
   * @throws UnsupportedOperationException if the backend cannot be asked to stop
   * @throws IllegalStateException if the backend is closed, or this is called from within its
   *     planning or a compute of it
   */
  public Backend setAbort(@Nullable BooleanSupplier abort) {
    if (cpu == null) {
      throw new UnsupportedOperationException(device.name() + " cannot be asked to stop");
    }
    beginExclusive();
    try {
      cpu.setAbort(abort);
      return this;
    } finally {
      endExclusive();
    }
  }

  /**
   * Computes a graph whose tensors all have memory, and returns when it is done.
   *
   * @throws GgmlException if the compute fails, or the device cannot compute one of the nodes
   * @throws IllegalArgumentException if an input holds a row index that is out of range
   * @throws IllegalStateException if the backend or a context of the graph's tensors is closed, a
   *     tensor has no memory, or this is called from within a compute of this backend
   */
  public void compute(Graph graph) {
    beginExclusive();
    ComputeWatch.Span span = ComputeWatch.begin();
    try {
      try (Graph.Use _ = graph.use();
          Context.Access access = graph.context().access();
          Context.Computed _ = access.computedBy(List.of(held()))) {
        GraphCheck.memory(graph);
        GraphCheck.support(graph, List.of(this));
        int status = ggml_backend_h.ggml_backend_graph_compute(handle, graph.handle());
        ComputeFailure.check(status, "computing " + graph + " on " + device.name(), takeThrown());
      }
    } finally {
      span.end(List.of(held()), graph.nodeCount());
      endExclusive();
    }
  }

  /**
   * Frees the backend, once no compute and no scheduler uses it any more. Harmless if done before.
   */
  @Override
  public void close() {
    lifetime.close();
  }

  /** Whether {@link #close} was called. */
  public boolean isClosed() {
    return lifetime.isClosed();
  }

  /**
   * The {@code ggml_backend_t}, for code that calls ggml's C functions itself and keeps the backend
   * open meanwhile; {@link #nativeCall} does that.
   *
   * @throws IllegalStateException if the backend is closed
   */
  public MemorySegment handle() {
    lifetime.check();
    return handle;
  }

  /**
   * Calls native code with the {@code ggml_backend_t}. A close by another thread takes effect after
   * the call.
   *
   * @return what {@code call} returned
   * @throws IllegalStateException if the backend is closed
   */
  public <T extends @Nullable Object> T nativeCall(Function<MemorySegment, T> call) {
    begin();
    try {
      return call.apply(handle);
    } finally {
      end();
    }
  }

  @Override
  public String toString() {
    return device.name() + "#" + id;
  }

  long id() {
    return id;
  }

  /** Keeps the backend; {@link #end} lets it go. */
  void begin() {
    lifetime.begin();
  }

  void end() {
    lifetime.end();
  }

  /** For an owner that keeps the backend open already. */
  void lock() {
    lock.lock();
  }

  void unlock() {
    lock.unlock();
  }

  private void beginExclusive() {
    lifetime.begin();
    try {
      checkOutside();
      lock.lock();
    } catch (RuntimeException | Error e) {
      lifetime.end();
      throw e;
    }
  }

  /**
   * Throws within a planning or compute of this backend: on the thread that does it, whose state
   * would change beneath it, and on the others that run its kernels, which would wait for their own
   * end.
   *
   * @throws IllegalStateException if this is called by a callback of one
   */
  void checkOutside() {
    if (lock.isHeldByCurrentThread() || Computing.on(handle)) {
      throw new IllegalStateException(
          "the backend %s cannot be used by a callback of its own planning or compute"
              .formatted(this));
    }
  }

  private void endExclusive() {
    lock.unlock();
    lifetime.end();
  }

  /** The handle, for an owner that keeps the backend open. */
  MemorySegment kept() {
    return handle;
  }

  /** What is told of a compute, by an owner that keeps the backend open. */
  ComputeWatch.Held held() {
    return new ComputeWatch.Held(this, handle);
  }

  /** What the abort callback threw since this was asked last. */
  @Nullable Throwable takeThrown() {
    return cpu == null ? null : cpu.takeThrown();
  }

  private void free() {
    ggml_backend_h.ggml_backend_free(handle);
    if (cpu != null) {
      cpu.free();
    }
  }
}
