package org.ggmlext;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.TreeSet;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;

/**
 * The memory that a scheduler or allocator gives to a graph's tensors: who has none before, so that
 * it can be taken away again. ggml itself leaves tensors with dangling addresses.
 */
final class GraphStorage {
  /** What becomes of nodes' sources while a graph is given memory. */
  enum Sources {
    /** Nothing. */
    LEFT,
    /** The extension layer adds some, for ggml's allocator alone. */
    ADDED,
    /** As before, and a scheduler replaces some by copies on other backends. */
    REPLACED
  }

  private final Graph graph;
  private final int version;
  private final LongList tensors = new LongList();
  private final List<Context> owners = new ArrayList<>();

  /** Which of the tensors had no memory: that of the others is not taken from them. */
  private final BitSet given = new BitSet();

  /** {@link Native#MAX_SRC} of each tensor; none where they are left. */
  private final LongList sources = new LongList();

  private GraphStorage(Graph graph) {
    this.graph = graph;
    this.version = graph.version();
  }

  /** What gives memory to the tensors that have none. */
  @FunctionalInterface
  interface Giver {
    /** Gives it; false if there is not enough. */
    boolean give();
  }

  /**
   * Gives memory to a graph whose contexts are held.
   *
   * @param sources what becomes of nodes' sources while the giver runs; those added are gone after
   *     it, so that whoever walks the nodes finds what they were made of
   * @throws GgmlException if there is not enough memory; everything is as it was then
   */
  static GraphStorage give(Graph graph, Sources sources, Giver giver) {
    while (true) {
      TreeSet<Context> without = new TreeSet<>(Context.BY_ID);
      contextsWithout(graph, without);
      List<Context> locked = lock(without);
      try {
        TreeSet<Context> now = new TreeSet<>(Context.BY_ID);
        contextsWithout(graph, now);
        if (!without.containsAll(now)) {
          continue;
        }
        GraphStorage storage = record(graph, sources);
        boolean done = false;
        try {
          done = giver.give();
        } finally {
          if (done) {
            storage.dropAddedSources();
          } else {
            storage.restore();
          }
        }
        if (!done) {
          throw new GgmlException("there is not enough memory for " + graph);
        }
        return storage;
      } finally {
        unlock(locked);
      }
    }
  }

  Graph graph() {
    return graph;
  }

  /** Whether this is the memory of a graph as it is now. */
  boolean isFor(Graph other) {
    return graph == other && version == other.version();
  }

  /** Takes the memory away. Contexts that are freed already need nothing. */
  void take() {
    TreeSet<Context> kept = new TreeSet<>(Context.BY_ID);
    for (Context owner : owners) {
      if (!kept.contains(owner) && owner.tryKeep()) {
        kept.add(owner);
      }
    }
    try {
      List<Context> locked = lock(kept);
      try {
        for (int i = 0; i < tensors.size(); i++) {
          if (kept.contains(owners.get(i))) {
            restore(i);
          }
        }
      } finally {
        unlock(locked);
      }
    } finally {
      kept.forEach(Context::release);
    }
  }

  private static void contextsWithout(Graph graph, TreeSet<Context> contexts) {
    LongList members = graph.snapshot();
    for (int i = 0; i < members.size(); i++) {
      if (needsMemory(members.get(i))) {
        contexts.add(graph.context().ownerOf(members.get(i)));
      }
    }
  }

  /** Whether a tensor has no memory, or is a view that does not know where its storage is now. */
  private static boolean needsMemory(long tensor) {
    long buffer = Native.buffer(tensor);
    long data = Native.data(tensor);
    long root = Native.viewSrc(tensor);
    return buffer == 0
        || data == 0
        || (root != 0
            && (buffer != Native.buffer(root)
                || Native.data(root) == 0
                || data != Native.data(root) + Native.viewOffset(tensor)));
  }

  private static GraphStorage record(Graph graph, Sources sources) {
    LongList members = graph.snapshot();
    GraphStorage storage = new GraphStorage(graph);
    for (int i = 0; i < members.size(); i++) {
      long tensor = members.get(i);
      boolean needs = needsMemory(tensor);
      // The layer adds nothing to nodes that have memory.
      if (needs || (sources == Sources.REPLACED && Native.src(tensor, 0) != 0)) {
        storage.add(tensor, needs, sources != Sources.LEFT);
      }
    }
    return storage;
  }

  private void add(long tensor, boolean needs, boolean keepSources) {
    if (needs) {
      given.set(tensors.size());
      // A view may hold an address that is no longer true.
      Native.place(tensor, 0, 0);
    }
    tensors.add(tensor);
    owners.add(graph.context().ownerOf(tensor));
    for (int src = 0; keepSources && src < Native.MAX_SRC; src++) {
      sources.add(Native.src(tensor, src));
    }
  }

  /** Added sources follow a node's own; replaced ones take their places. */
  private void dropAddedSources() {
    for (int i = 0; i < sources.size(); i++) {
      if (sources.get(i) == 0) {
        Native.src(tensors.get(i / Native.MAX_SRC), i % Native.MAX_SRC, 0);
      }
    }
  }

  private void restore() {
    for (int i = 0; i < tensors.size(); i++) {
      restore(i);
    }
  }

  private void restore(int index) {
    long tensor = tensors.get(index);
    if (given.get(index)) {
      Native.place(tensor, 0, 0);
    }
    if (sources.size() > 0) {
      for (int src = 0; src < Native.MAX_SRC; src++) {
        Native.src(tensor, src, sources.get(index * Native.MAX_SRC + src));
      }
    }
  }

  private static List<Context> lock(Iterable<Context> inOrder) {
    List<Context> locked = new ArrayList<>();
    try {
      for (Context context : inOrder) {
        context.lockStorage();
        locked.add(context);
      }
      return locked;
    } catch (RuntimeException | Error e) {
      unlock(locked);
      throw e;
    }
  }

  private static void unlock(List<Context> locked) {
    locked.forEach(Context::unlockStorage);
  }
}
