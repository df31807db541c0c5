package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;
import org.ggmlext.internal.Planning;
import org.ggmlext.internal.callback.CallbackThreads;

/**
 * The nodes that compute some tensors, in an order in which they can be computed. A graph lives in
 * its context; its tensors may come from others.
 *
 * <p>Safe for use by several threads. {@link #expand} waits for allocations and computes of this
 * graph; called by a callback of one of them it throws.
 */
public final class Graph {
  /** ggml follows sources by recursion: no chain is handed over that is longer than this. */
  private static final int MAX_DEPTH = 256;

  private final Context context;
  private final MemorySegment handle;
  private final int capacity;

  /** All tensors of the graph, sources before what is made of them. */
  private final LongList members = new LongList();

  /** Those of them that read indices. */
  private final LongList indexed = new LongList();

  private final Set<Long> known = new HashSet<>();
  private int nodes;
  private int leaves;
  private volatile int version;

  /** Shared by native calls that walk the graph, exclusive for what makes it grow. */
  private final ReentrantReadWriteLock growth = new ReentrantReadWriteLock();

  Graph(Context context, MemorySegment handle, int capacity) {
    this.context = context;
    this.handle = handle;
    this.capacity = capacity;
  }

  /** The context that the graph was made in. */
  public Context context() {
    return context;
  }

  /**
   * Adds tensors and all that is needed to compute them.
   *
   * @return this
   * @throws GgmlException if the graph has no room for them; it is unchanged then
   * @throws IllegalStateException if a context is closed, or this is called by a callback of an
   *     allocation or compute of this graph
   */
  public Graph expand(Tensor... outputs) {
    for (Tensor output : outputs) {
      context.dependOn(output.context());
    }
    lockGrowth();
    // Nor may another graph of the same nodes be given memory: their sources change meanwhile.
    try (Context.Access _ = context.access()) {
      synchronized (this) {
        expandHeld(outputs);
      }
      return this;
    } finally {
      growth.writeLock().unlock();
    }
  }

  private void lockGrowth() {
    if (growth.getReadHoldCount() == 0 && growth.writeLock().tryLock()) {
      return;
    }
    if (growth.getReadHoldCount() > 0 || CallbackThreads.isAdopted() || Planning.isCallback()) {
      throw new IllegalStateException(
          "a graph cannot be expanded by a callback while it is expanded, allocated or computed");
    }
    growth.writeLock().lock();
  }

  /** A graph that does not grow until this is closed, by the thread that got it. */
  record Use(Graph graph) implements AutoCloseable {
    @Override
    public void close() {
      graph.growth.readLock().unlock();
    }
  }

  /** Keeps the graph as it is, for native code that walks it. */
  Use use() {
    // Not behind a waiting expansion: it may wait for a compute that this use is part of.
    if (!growth.readLock().tryLock()) {
      growth.readLock().lock();
    }
    return new Use(this);
  }

  private void expandHeld(Tensor... outputs) {
    LongList found = new LongList();
    LongList handOver = new LongList();
    Set<Long> added = new HashSet<>();
    int newNodes = 0;
    for (Tensor output : outputs) {
      newNodes += walk(output.handle().address(), found, handOver, added);
      handOver.add(output.handle().address());
    }
    int newLeaves = found.size() - newNodes;
    if (nodes + newNodes > capacity || leaves + newLeaves > capacity) {
      throw new GgmlException(
          "the graph is full: %d nodes and %d leaves do not fit into room for %d of each"
              .formatted(nodes + newNodes, leaves + newLeaves, capacity));
    }
    for (int i = 0; i < handOver.size(); i++) {
      ggml_h.ggml_build_forward_expand(handle, MemorySegment.ofAddress(handOver.get(i)));
    }
    for (int i = 0; i < found.size(); i++) {
      if (IndexedRows.isIndexed(found.get(i))) {
        indexed.add(found.get(i));
      }
    }
    members.addAll(found);
    known.addAll(added);
    nodes += newNodes;
    leaves += newLeaves;
    version++;
  }

  /**
   * Finds what is new, in ggml's own order (a tensor after its sources), without recursion.
   *
   * @param added what was found before, of other outputs
   * @param handOver gets the tensors that cut long chains
   * @return how many of those found are nodes
   */
  private int walk(long output, LongList found, LongList handOver, Set<Long> added) {
    if (known.contains(output) || !added.add(output)) {
      return 0;
    }
    int newNodes = 0;
    LongList path = new LongList();
    LongList next = new LongList();
    LongList depth = new LongList();
    path.add(output);
    next.add(0);
    depth.add(0);
    while (path.size() > 0) {
      int top = path.size() - 1;
      long tensor = path.get(top);
      int index = (int) next.get(top);
      if (index < Native.MAX_SRC) {
        next.set(top, index + 1L);
        long source = Native.src(tensor, index);
        if (source != 0 && !known.contains(source) && added.add(source)) {
          path.add(source);
          next.add(0);
          depth.add(0);
        }
        continue;
      }
      path.removeLast();
      next.removeLast();
      long below = depth.removeLast() + 1;
      found.add(tensor);
      newNodes += isLeaf(tensor) ? 0 : 1;
      if (below >= MAX_DEPTH) {
        handOver.add(tensor);
        below = 0;
      }
      if (path.size() > 0 && depth.get(top - 1) < below) {
        depth.set(top - 1, below);
      }
    }
    return newNodes;
  }

  private static boolean isLeaf(long tensor) {
    return Native.op(tensor) == ggml_h.GGML_OP_NONE()
        && (Native.flags(tensor) & ggml_h.GGML_TENSOR_FLAG_PARAM()) == 0;
  }

  /**
   * The nodes in the order in which they are computed.
   *
   * @throws IllegalStateException if a context is closed
   */
  public synchronized List<Tensor> nodes() {
    return members(false);
  }

  /**
   * The tensors that are no results: weights, inputs, constants.
   *
   * @throws IllegalStateException if a context is closed
   */
  public synchronized List<Tensor> leaves() {
    return members(true);
  }

  private List<Tensor> members(boolean leaf) {
    try (Context.Hold _ = context.hold()) {
      List<Tensor> all = new ArrayList<>();
      for (int i = 0; i < members.size(); i++) {
        long tensor = members.get(i);
        if (isLeaf(tensor) == leaf) {
          all.add(new Tensor(context.ownerOf(tensor), Native.tensor(tensor)));
        }
      }
      return List.copyOf(all);
    }
  }

  /** Number of nodes. */
  public synchronized int nodeCount() {
    return nodes;
  }

  /** Number of tensors that are no results. */
  public synchronized int leafCount() {
    return leaves;
  }

  /** Nodes, and leaves, that the graph has room for. */
  public int capacity() {
    return capacity;
  }

  /** Whether a tensor is one of the graph's. */
  public synchronized boolean contains(Tensor tensor) {
    return known.contains(tensor.handle().address());
  }

  /**
   * The {@code ggml_cgraph *}, for code that calls ggml's C functions itself.
   *
   * @throws IllegalStateException if the context is closed
   */
  public MemorySegment handle() {
    if (context.isClosed()) {
      throw new IllegalStateException("the context of the graph is closed");
    }
    return handle;
  }

  @Override
  public String toString() {
    return "a graph of " + nodeCount() + " nodes";
  }

  /** Goes up with each expansion. */
  int version() {
    return version;
  }

  /** The addresses of all tensors now, sources before what is made of them. */
  synchronized LongList snapshot() {
    return members.copy();
  }

  /** The addresses of the nodes that read indices. */
  synchronized LongList indexed() {
    return indexed.copy();
  }

  MemorySegment kept() {
    return handle;
  }
}
