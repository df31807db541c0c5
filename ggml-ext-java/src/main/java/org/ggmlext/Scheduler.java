package org.ggmlext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.ComputeFailure;
import org.ggmlext.internal.ComputeWatch;
import org.ggmlext.internal.EvalSlots;
import org.ggmlext.internal.Lifetime;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.Planning;
import org.jspecify.annotations.Nullable;

/**
 * Spreads graphs over backends, gives their tensors memory and computes them. Every node runs on
 * the first backend that supports it, unless its data are elsewhere or {@link #assign} says
 * otherwise.
 *
 * <p>One graph at a time has memory here. Allocating or computing another one, {@link #reset} and
 * {@link #close} take it from the one before; its tensors throw {@link IllegalStateException} when
 * they are read from then on, and it can be allocated anew.
 *
 * <p>Safe for use by several threads: what changes or computes waits for its turn. Schedulers that
 * share no backend allocate and compute in parallel. The scheduler keeps its backends until it is
 * freed.
 */
public final class Scheduler implements AutoCloseable {
  /** Nodes, and leaves, that a graph may have if nothing is said. */
  public static final int DEFAULT_GRAPH_SIZE = 2048;

  private static final int MAX_BACKENDS = 16;

  private final List<Backend> backends;
  private final List<Backend> inLockOrder;
  private final List<ComputeWatch.Held> held;
  private final int graphSize;
  private MemorySegment handle;
  private final Lifetime lifetime;
  private final ReentrantLock lock = new ReentrantLock();
  private final EvalSlots.Slot eval = EvalSlots.newSlot();
  private final Map<Tensor, Backend> assigned = new LinkedHashMap<>();
  private @Nullable GraphStorage storage;

  private Scheduler(List<Backend> backends, int graphSize) {
    this.backends = List.copyOf(backends);
    this.inLockOrder =
        backends.stream().sorted(Comparator.comparingLong(Backend::id)).distinct().toList();
    this.held = backends.stream().map(Backend::held).toList();
    this.graphSize = graphSize;
    this.lifetime = new Lifetime("the scheduler", this::free);
    this.handle = newHandle();
  }

  private MemorySegment newHandle() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment array = arena.allocate(ValueLayout.ADDRESS, backends.size());
      for (int i = 0; i < backends.size(); i++) {
        array.setAtIndex(ValueLayout.ADDRESS, i, backends.get(i).kept());
      }
      // Its hash table must hold nodes, leaves, and a copy of each tensor on further backends.
      long room = (long) graphSize * (1 + backends.size());
      return ggml_backend_h.ggml_backend_sched_new(
          array, MemorySegment.NULL, backends.size(), room, false, true);
    }
  }

  /**
   * A scheduler of these backends for graphs of the {@linkplain #DEFAULT_GRAPH_SIZE usual size}.
   */
  public static Scheduler of(Backend... backends) {
    return of(List.of(backends), DEFAULT_GRAPH_SIZE);
  }

  /**
   * A scheduler.
   *
   * @param backends the preferred ones first; the last one is a CPU, where everything ends up that
   *     no other can do
   * @param graphSize nodes and leaves together that a graph may have
   * @throws IllegalArgumentException if there are no backends, more than 16, the same one twice, or
   *     the last one is no CPU; or if the size is not 1 to 1,048,576
   * @throws IllegalStateException if a backend is closed
   */
  public static Scheduler of(List<Backend> backends, int graphSize) {
    if (backends.isEmpty() || backends.size() > MAX_BACKENDS) {
      throw new IllegalArgumentException(
          "a scheduler has 1 to %d backends, not %d".formatted(MAX_BACKENDS, backends.size()));
    }
    if (backends.stream().distinct().count() != backends.size()) {
      throw new IllegalArgumentException("a scheduler cannot have a backend twice: " + backends);
    }
    Backend last = backends.getLast();
    if (last.device().type() != DeviceType.CPU) {
      throw new IllegalArgumentException(
          "the last backend of a scheduler must be a CPU, not " + last.device().name());
    }
    if (graphSize < 1 || graphSize > 1 << 20) {
      throw new IllegalArgumentException(
          "the size of graphs is 1 to %d, not %d".formatted(1 << 20, graphSize));
    }
    int kept = 0;
    try {
      for (Backend backend : backends) {
        backend.begin();
        kept++;
      }
      Scheduler scheduler = new Scheduler(backends, graphSize);
      kept = 0;
      return scheduler;
    } finally {
      backends.subList(0, kept).forEach(Backend::end);
    }
  }

  /** The backends, the preferred ones first. */
  public List<Backend> backends() {
    return backends;
  }

  /**
   * Makes buffers large enough for a graph, such as the largest one that will come. The graph
   * itself gets no memory. Scratch memory of kernels that does not fit is left out: then the
   * compute fails.
   *
   * @throws GgmlException if there is not enough memory, or no backend supports one of the nodes
   * @throws IllegalArgumentException if the graph is larger than this scheduler's graphs may be
   * @throws IllegalStateException if the scheduler or a context is closed, or the graph is empty
   */
  public void reserve(Graph graph) {
    exclusive(
        () -> {
          try (Graph.Use _ = graph.use();
              Context.Hold _ = graph.context().hold()) {
            prepare(graph);
            reserveHeld(graph);
          }
        });
  }

  private void reserveHeld(Graph graph) {
    give(
            graph,
            () -> {
              placeUnread(graph);
              return ggml_backend_h.ggml_backend_sched_reserve(handle, graph.kept());
            })
        .take();
  }

  /**
   * Gives memory to all tensors of a graph that have none. Inputs are written after it, and before
   * {@link #compute}.
   *
   * @throws GgmlException if there is not enough memory, or no backend supports one of the nodes
   * @throws IllegalArgumentException if the graph is larger than this scheduler's graphs may be
   * @throws IllegalStateException if the scheduler or a context is closed, or the graph is empty
   */
  public void allocate(Graph graph) {
    exclusive(
        () -> {
          try (Graph.Use _ = graph.use();
              Context.Hold _ = graph.context().hold()) {
            allocateHeld(graph);
          }
        });
  }

  private void allocateHeld(Graph graph) {
    prepare(graph);
    if (MemoryNeed.isUncertain(graph, backends)) {
      // Where ggml gets no memory while it allocates, it ends the process; reserving may fail.
      reserveHeld(graph);
    }
    storage =
        give(
            graph,
            () -> {
              placeUnread(graph);
              placeAssigned(graph);
              return ggml_backend_h.ggml_backend_sched_alloc_graph(handle, graph.kept());
            });
  }

  private void placeAssigned(Graph graph) {
    assigned.forEach(
        (tensor, backend) -> {
          if (graph.contains(tensor)) {
            ggml_backend_h.ggml_backend_sched_set_tensor_backend(
                handle, tensor.handle(), backend.kept());
          }
        });
  }

  /**
   * ggml puts a leaf where a node runs that reads it. Where views alone do, which run nowhere, it
   * finds no backend and ends the process. Such a leaf goes where what reads the view likely runs.
   */
  private void placeUnread(Graph graph) {
    UnreadLeaves.of(graph)
        .forEach(
            (leaf, reader) ->
                ggml_backend_h.ggml_backend_sched_set_tensor_backend(
                    handle, Native.tensor(leaf), preferred(reader).kept()));
  }

  /** The first backend that supports a node; the first one for 0. */
  private Backend preferred(long node) {
    return backends.stream()
        .filter(
            backend ->
                node == 0
                    || ggml_backend_h.ggml_backend_dev_supports_op(
                        backend.device().handle(), Native.tensor(node)))
        .findFirst()
        .orElse(backends.getLast());
  }

  private GraphStorage give(Graph graph, GraphStorage.Giver giver) {
    BooleanSupplier planning =
        () -> {
          GraphCheck.support(graph, backends);
          return giver.give();
        };
    // Backends plan a graph while it is given memory, and do one thing at a time.
    inLockOrder.forEach(Backend::lock);
    try {
      return GraphStorage.give(
          graph,
          backends.size() > 1 ? GraphStorage.Sources.REPLACED : GraphStorage.Sources.ADDED,
          () -> {
            if (Planning.plan(planning)) {
              return true;
            }
            // A scheduler that once got no memory believes from then on that it has it.
            ggml_backend_h.ggml_backend_sched_free(handle);
            handle = newHandle();
            applyEval();
            return false;
          });
    } finally {
      inLockOrder.reversed().forEach(Backend::unlock);
    }
  }

  /** Forgets the graph before and closed nodes, and checks what needs no planning. */
  private void prepare(Graph graph) {
    GraphCheck.notEmpty(graph);
    int tensors = graph.nodeCount() + graph.leafCount();
    if (tensors > graphSize) {
      throw new IllegalArgumentException(
          "the graph has %d nodes and leaves, this scheduler was made for %d"
              .formatted(tensors, graphSize));
    }
    takeStorage();
    // They would be kept for nothing, and others may get their addresses.
    assigned.keySet().removeIf(tensor -> tensor.context().isClosed());
  }

  /**
   * Computes a graph and returns when it is done. A graph that has no memory here yet, or has grown
   * since, is allocated first.
   *
   * @throws GgmlException if the compute fails; what a callback threw is the cause. The next
   *     compute works.
   * @throws IllegalArgumentException if an input holds a row index that is out of range
   * @throws IllegalStateException if the scheduler or a context is closed, a tensor has lost its
   *     memory, or this is called from within an allocation or compute of this scheduler
   */
  public void compute(Graph graph) {
    exclusive(
        () -> {
          try (Graph.Use _ = graph.use();
              Context.Hold _ = graph.context().hold()) {
            GraphStorage current = storage;
            if (current == null || !current.isFor(graph)) {
              allocateHeld(graph);
            }
            computeHeld(graph);
          }
        });
  }

  private void computeHeld(Graph graph) {
    inLockOrder.forEach(Backend::lock);
    ComputeWatch.Span span = ComputeWatch.begin();
    try (Context.Access access = graph.context().access();
        Context.Computed _ = access.computedBy(held)) {
      GraphCheck.memory(graph);
      int status = ggml_backend_h.ggml_backend_sched_graph_compute(handle, graph.kept());
      Throwable thrown = eval.takeThrown();
      for (Backend backend : backends) {
        Throwable aborted = backend.takeThrown();
        thrown = thrown == null ? aborted : thrown;
      }
      if (status == 0 && thrown != null) {
        throw new GgmlException("computing " + graph + " was stopped by its callback", thrown);
      }
      ComputeFailure.check(status, "computing " + graph, thrown);
    } finally {
      span.end(held, graph.nodeCount());
      inLockOrder.reversed().forEach(Backend::unlock);
    }
  }

  /**
   * Takes the memory from the graph that has it, and forgets what was {@linkplain #assign
   * assigned}.
   *
   * @throws IllegalStateException if the scheduler is closed
   */
  public void reset() {
    exclusive(
        () -> {
          assigned.clear();
          takeStorage();
        });
  }

  private void takeStorage() {
    GraphStorage old = storage;
    storage = null;
    if (old != null) {
      old.take();
    }
    ggml_backend_h.ggml_backend_sched_reset(handle);
  }

  /**
   * Lets a node run on a certain backend, from the next allocation until {@link #reset} or until
   * its context is closed. ggml still moves it to a preferred backend that works on the same
   * memory.
   *
   * @throws IllegalArgumentException if the backend is none of this scheduler's, or does not
   *     support the node
   * @throws IllegalStateException if the scheduler or the tensor's context is closed
   */
  public void assign(Tensor node, Backend backend) {
    if (!backends.contains(backend)) {
      throw new IllegalArgumentException(backend + " is none of this scheduler's: " + backends);
    }
    if (!backend.device().supportsOp(node)) {
      throw new IllegalArgumentException(
          "%s does not support %s of %s".formatted(backend, node.op(), node));
    }
    exclusive(() -> assigned.put(node, backend));
  }

  /**
   * The backend that a tensor of the graph with memory is on; null for one of another graph.
   *
   * @throws IllegalStateException if the scheduler or the tensor's context is closed
   */
  public @Nullable Backend backendOf(Tensor tensor) {
    return query(
        () -> {
          GraphStorage current = storage;
          if (current == null || !current.graph().contains(tensor)) {
            return null;
          }
          try (Context.Hold _ = tensor.context().hold()) {
            long address =
                ggml_backend_h
                    .ggml_backend_sched_get_tensor_backend(handle, tensor.handle())
                    .address();
            return backends.stream()
                .filter(backend -> backend.kept().address() == address)
                .findFirst()
                .orElse(null);
          }
        });
  }

  /**
   * Bytes of the buffer that graphs have on a backend.
   *
   * @throws IllegalArgumentException if the backend is none of this scheduler's
   * @throws IllegalStateException if the scheduler is closed
   */
  public long bufferSize(Backend backend) {
    if (!backends.contains(backend)) {
      throw new IllegalArgumentException(backend + " is none of this scheduler's: " + backends);
    }
    return query(() -> ggml_backend_h.ggml_backend_sched_get_buffer_size(handle, backend.kept()));
  }

  /**
   * Parts that the last allocated graph was split into: stretches of nodes on one backend.
   *
   * @throws IllegalStateException if the scheduler is closed
   */
  public int splits() {
    return query(() -> ggml_backend_h.ggml_backend_sched_get_n_splits(handle));
  }

  /**
   * Watches nodes while they are computed. Extensions do not fuse then.
   *
   * @param callback null: no more
   * @throws IllegalStateException if the scheduler is closed
   */
  public void setEvalCallback(@Nullable EvalCallback callback) {
    exclusive(
        () -> {
          eval.set(
              callback == null
                  ? null
                  : (tensor, ask) -> {
                    Tensor node = nodeAt(tensor);
                    return ask ? callback.wants(node) : callback.computed(node);
                  });
          applyEval();
        });
  }

  private void applyEval() {
    ggml_backend_h.ggml_backend_sched_set_eval_callback(
        handle,
        eval.isSet() ? EvalSlots.stub() : MemorySegment.NULL,
        eval.isSet() ? eval.userData() : MemorySegment.NULL);
  }

  /** For the callback, within a compute. */
  private Tensor nodeAt(long address) {
    GraphStorage current = Objects.requireNonNull(storage);
    return new Tensor(current.graph().context().ownerOf(address), Native.tensor(address));
  }

  /**
   * Frees the scheduler and its buffers once no other thread uses it any more. Harmless if done
   * before.
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
   * The {@code ggml_backend_sched_t}, for code that calls ggml's C functions itself. It is another
   * one after an allocation that failed.
   *
   * @throws IllegalStateException if the scheduler is closed
   */
  public MemorySegment handle() {
    return query(() -> handle);
  }

  private void exclusive(Runnable action) {
    query(
        () -> {
          action.run();
          return true;
        });
  }

  private <T extends @Nullable Object> T query(Supplier<T> action) {
    lifetime.begin();
    try {
      if (lock.isHeldByCurrentThread()) {
        throw new IllegalStateException(
            "a scheduler cannot be used by a callback of its own allocation or compute");
      }
      backends.forEach(Backend::checkOutside); // its worker threads would wait for their own end
      lock.lock();
      try {
        return action.get();
      } finally {
        lock.unlock();
      }
    } finally {
      lifetime.end();
    }
  }

  private void free() {
    GraphStorage old = storage;
    if (old != null) {
      old.take();
    }
    ggml_backend_h.ggml_backend_sched_free(handle);
    eval.free();
    backends.forEach(Backend::end);
  }
}
