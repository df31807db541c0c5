package org.ggmlext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.bindings.ggml_init_params;
import org.ggmlext.internal.ComputeWatch;
import org.ggmlext.internal.Lifetime;
import org.ggmlext.internal.Malloc;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.callback.Computing;

/**
 * Where tensors and graphs are described, and what makes them: the methods of {@link
 * ElementwiseOps} and its siblings build operations out of tensors of this and of other contexts. A
 * context holds descriptions alone; data live in buffers ({@link #allocate}) or in those of a
 * {@link Scheduler} or {@link GraphAllocator}.
 *
 * <p>A context has a fixed size. A tensor that no longer fits is refused by a {@link
 * GgmlException}.
 *
 * <p>Closing a context frees its tensors, graphs and buffers. Whatever was built out of them, in
 * other contexts too, throws {@link IllegalStateException} from then on. Safe for use by several
 * threads.
 */
public final class Context
    implements AutoCloseable,
        ElementwiseOps,
        ActivationOps,
        ReduceOps,
        ShapeOps,
        MatrixOps,
        NormOps,
        AttentionOps {
  static final Comparator<Context> BY_ID = Comparator.comparingLong(context -> context.id);

  private static final Context[] NONE = {};

  /** The contexts whose tensors are computed with, by the address of the backend. */
  private static final Map<Long, Context[]> COMPUTED = new ConcurrentHashMap<>();

  private static final AtomicLong COUNT = new AtomicLong();

  private final long id = COUNT.incrementAndGet();
  private final MemorySegment handle;
  private final MemorySegment memory;
  private final long size;
  private final Lifetime lifetime;
  private final Object lock = new Object();
  private final List<Buffer> buffers = new ArrayList<>();

  /** Shared by whatever reads where tensors' data are, exclusive for whatever changes that. */
  private final ReentrantReadWriteLock storage = new ReentrantReadWriteLock();

  /** Contexts whose tensors this one's are made of; grows only, replaced as a whole. */
  private volatile Context[] sources = NONE;

  private Context(long bytes) {
    Ggml.get();
    if (bytes <= 0) {
      throw new IllegalArgumentException("a context needs a positive size, not " + bytes);
    }
    // ggml ends the process where it gets no memory.
    memory = Malloc.malloc(bytes);
    if (Native.isNull(memory)) {
      throw new GgmlException("no memory for a context of " + bytes + " bytes");
    }
    size = bytes;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = ggml_init_params.allocate(arena);
      ggml_init_params.mem_size(params, bytes);
      ggml_init_params.mem_buffer(params, memory);
      ggml_init_params.no_alloc(params, true);
      handle = ggml_h.ggml_init(params);
    }
    lifetime = new Lifetime("the context", this::free);
  }

  /**
   * A context of a size in bytes. {@link #forTensors} and {@link #forGraph} compute it.
   *
   * @throws IllegalArgumentException if the size is not positive
   * @throws GgmlException if there is no memory for it
   * @throws IllegalStateException if ggml is not loaded
   */
  public static Context create(long bytes) {
    return new Context(bytes);
  }

  /**
   * A context for so many tensors.
   *
   * @throws IllegalArgumentException if the number is not positive
   */
  public static Context forTensors(int tensors) {
    if (tensors < 1) {
      throw new IllegalArgumentException("a context holds at least 1 tensor, not " + tensors);
    }
    Ggml.get();
    return new Context(tensors * ggml_h.ggml_tensor_overhead());
  }

  /**
   * A context for one graph with room for so many nodes and as many leaves, and all their tensors.
   *
   * @throws IllegalArgumentException if the number is not positive
   */
  public static Context forGraph(int nodes) {
    if (nodes < 1) {
      throw new IllegalArgumentException("a graph has at least 1 node, not " + nodes);
    }
    Ggml.get();
    return new Context(
        2L * nodes * ggml_h.ggml_tensor_overhead()
            + ggml_h.ggml_graph_overhead_custom(nodes, false));
  }

  /**
   * A new tensor without data.
   *
   * @param ne one to four sizes, the fastest dimension first
   * @throws IllegalArgumentException if a size is not positive, a row is no whole number of the
   *     type's blocks, or the loaded ggml does not know the type
   * @throws GgmlException if the context is full
   * @throws IllegalStateException if the context is closed
   */
  public Tensor newTensor(Type type, long... ne) {
    return newTensor(type, Shape.of(ne));
  }

  /** As {@link #newTensor(Type, long...)}. */
  public Tensor newTensor(Type type, Shape shape) {
    Check.tensor(type, shape);
    return nativeNode(
        1,
        List.of(),
        ctx ->
            ggml_h.ggml_new_tensor_4d(
                ctx, type.value(), shape.ne0(), shape.ne1(), shape.ne2(), shape.ne3()));
  }

  /**
   * Makes a tensor by a call into native code, with the checks that every operation here goes
   * through: the contexts are open and stay so during the call, and this one has room.
   *
   * @param tensors how many tensors the call makes at most
   * @param from the tensors that it makes them of
   * @param node makes them, and gives the last one
   * @return the tensor that {@code node} gave
   * @throws GgmlException if the context is full, or {@code node} gave NULL
   * @throws IllegalStateException if this context or that of a source is closed
   */
  public Tensor nativeNode(int tensors, List<Tensor> from, NativeNode node) {
    for (Tensor tensor : from) {
      dependOn(tensor.context());
    }
    try (Hold _ = hold()) {
      synchronized (lock) {
        needRoom(tensors * ggml_h.ggml_tensor_overhead(), tensors + " more tensors");
        MemorySegment made = node.make(handle);
        if (Native.isNull(made)) {
          throw new GgmlException("ggml made no tensor");
        }
        return new Tensor(this, Native.tensor(made.address()));
      }
    }
  }

  /**
   * A new, empty graph.
   *
   * @param nodes how many nodes, and how many leaves, it has room for
   * @throws IllegalArgumentException if that is not positive
   * @throws GgmlException if the context is full
   * @throws IllegalStateException if the context is closed
   */
  public Graph newGraph(int nodes) {
    if (nodes < 1) {
      throw new IllegalArgumentException("a graph has room for at least 1 node, not " + nodes);
    }
    try (Hold _ = hold()) {
      synchronized (lock) {
        needRoom(ggml_h.ggml_graph_overhead_custom(nodes, false), "a graph of " + nodes + " nodes");
        return new Graph(this, ggml_h.ggml_new_graph_custom(handle, nodes, false), nodes);
      }
    }
  }

  /**
   * Gives memory on a device to all tensors of this context that have none, results of operations
   * included. The buffer belongs to the context and is freed with it.
   *
   * @throws GgmlException if there is not so much memory, or no tensor needs any
   * @throws IllegalStateException if the context is closed, or one of its tensors is a view of one
   *     without memory in another context
   */
  public Buffer allocate(Device device) {
    try (Hold _ = hold()) {
      // Before the other lock, which kernels of the compute that is waited for may want.
      lockStorage();
      try {
        synchronized (lock) {
          Buffer buffer = Buffer.allocate(this, handle, device);
          buffers.add(buffer);
          return buffer;
        }
      } finally {
        unlockStorage();
      }
    }
  }

  /** As {@link #allocate(Device)}, on the backend's device. */
  public Buffer allocate(Backend backend) {
    return allocate(backend.device());
  }

  /**
   * The tensors made in this context, in the order in which they were made; those that an operation
   * made on its way included.
   *
   * @throws IllegalStateException if the context is closed
   */
  public List<Tensor> tensors() {
    try (Hold _ = hold()) {
      synchronized (lock) {
        List<Tensor> all = new ArrayList<>();
        MemorySegment next = ggml_h.ggml_get_first_tensor(handle);
        while (!Native.isNull(next)) {
          all.add(new Tensor(this, Native.tensor(next.address())));
          next = ggml_h.ggml_get_next_tensor(handle, next);
        }
        return List.copyOf(all);
      }
    }
  }

  /**
   * Bytes that are still free.
   *
   * @throws IllegalStateException if the context is closed
   */
  public long freeBytes() {
    try (Hold _ = hold()) {
      synchronized (lock) {
        return size - ggml_h.ggml_used_mem(handle);
      }
    }
  }

  /** Frees the context once no other thread uses it any more. Harmless if done before. */
  @Override
  public void close() {
    lifetime.close();
  }

  /** Whether {@link #close} was called. */
  public boolean isClosed() {
    return lifetime.isClosed();
  }

  /**
   * The {@code ggml_context *}, for code that calls ggml's C functions itself.
   *
   * @throws IllegalStateException if the context is closed
   */
  public MemorySegment handle() {
    lifetime.check();
    return handle;
  }

  @Override
  public String toString() {
    return "context of " + size + " bytes" + (isClosed() ? ", closed" : "");
  }

  /** Contexts that stay open until this is closed. */
  record Hold(Context context, Context[] sources) implements AutoCloseable {
    @Override
    public void close() {
      for (Context source : sources) {
        source.lifetime.end();
      }
      context.lifetime.end();
    }
  }

  /**
   * Keeps this context, and those whose tensors it uses, open.
   *
   * @throws IllegalStateException if one of them is closed
   */
  Hold hold() {
    lifetime.begin();
    Context[] held = sources;
    for (int i = 0; i < held.length; i++) {
      if (!held[i].lifetime.tryBegin()) {
        new Hold(this, Arrays.copyOf(held, i)).close();
        throw new IllegalStateException(
            "a context whose tensors are used in this one is closed: " + held[i]);
      }
    }
    return new Hold(this, held);
  }

  /** Open contexts whose tensors' data stay where they are until this is closed. */
  record Access(Hold hold, Context[] locked) implements AutoCloseable {
    @Override
    public void close() {
      for (Context context : locked) {
        context.storage.readLock().unlock();
      }
      hold.close();
    }

    /** Tells that these backends compute with the contexts' tensors, until it is closed. */
    Computed computedBy(List<ComputeWatch.Held> backends) {
      backends.forEach(backend -> COMPUTED.put(backend.handle().address(), locked));
      return new Computed(backends);
    }
  }

  /** A compute of backends, each of which does one at a time. */
  record Computed(List<ComputeWatch.Held> backends) implements AutoCloseable {
    @Override
    public void close() {
      backends.forEach(backend -> COMPUTED.remove(backend.handle().address()));
    }
  }

  /**
   * Keeps this context, and those whose tensors it uses, open, and their tensors' data in place.
   *
   * @throws IllegalStateException if one of them is closed
   */
  Access access() {
    Hold hold = hold();
    Context[] all = Arrays.copyOf(hold.sources(), hold.sources().length + 1);
    all[all.length - 1] = this;
    Arrays.sort(all, BY_ID);
    for (Context context : all) {
      // Not behind a waiting writer: it may wait for a compute that this access is part of.
      if (!context.storage.readLock().tryLock()) {
        context.storage.readLock().lock();
      }
    }
    return new Access(hold, all);
  }

  /**
   * Excludes accesses, to change where tensors' data are. Several contexts: in the order of ids.
   */
  void lockStorage() {
    if (storage.getReadHoldCount() > 0
        || storage.isWriteLockedByCurrentThread()
        || Computing.any(this::isComputedBy)) {
      throw new IllegalStateException(
          "memory of tensors cannot be given or taken by a callback of an allocation or compute"
              + " that uses them");
    }
    storage.writeLock().lock();
  }

  void unlockStorage() {
    storage.writeLock().unlock();
  }

  private boolean isComputedBy(long backend) {
    return Arrays.asList(COMPUTED.getOrDefault(backend, NONE)).contains(this);
  }

  /** Keeps this context's memory if it is not freed yet; {@link #release} lets it go. */
  boolean tryKeep() {
    return lifetime.tryBegin();
  }

  void release() {
    lifetime.end();
  }

  /** Whether an address lies in this context's memory. */
  boolean owns(long address) {
    return address >= memory.address() && address < memory.address() + size;
  }

  /** The context out of this one and its sources that made a tensor. */
  Context ownerOf(long tensor) {
    if (owns(tensor)) {
      return this;
    }
    for (Context source : sources) {
      if (source.owns(tensor)) {
        return source;
      }
    }
    throw new AssertionError("a tensor of no known context");
  }

  /** Notes that tensors here are made of another context's. */
  void dependOn(Context other) {
    Context[] theirs = other.sources;
    if (other == this || (theirs.length == 0 && Arrays.asList(sources).contains(other))) {
      return;
    }
    synchronized (lock) {
      List<Context> all = new ArrayList<>(List.of(sources));
      if (!all.contains(other)) {
        all.add(other);
      }
      for (Context source : theirs) {
        if (source != this && !all.contains(source)) {
          all.add(source);
        }
      }
      if (all.size() != sources.length) {
        sources = all.toArray(NONE);
      }
    }
  }

  private void needRoom(long bytes, String what) {
    long free = size - ggml_h.ggml_used_mem(handle);
    if (bytes > free) {
      throw new GgmlException(
          "the context is full: %s need %d bytes, %d of its %d are free"
              .formatted(what, bytes, free, size));
    }
  }

  private void free() {
    for (Buffer buffer : buffers) {
      buffer.free();
    }
    ggml_h.ggml_free(handle);
    Malloc.free(memory);
  }
}
