package org.ggmlext;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;

/**
 * The memory that a scheduler or allocator gives to a graph's tensors: who has none before, so that
 * it can be taken away again. ggml itself leaves tensors with dangling addresses.
 */
final class GraphStorage {
  private final Graph graph;
  private final int version;
  private final LongList tensors;
  private final List<Context> owners;
  private final LongList before;
  private final LongList sources;

  private GraphStorage(
      Graph graph, LongList tensors, List<Context> owners, LongList before, LongList sources) {
    this.graph = graph;
    this.version = graph.version();
    this.tensors = tensors;
    this.owners = owners;
    this.before = before;
    this.sources = sources;
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
   * @param keepSources whether the giver may replace nodes' sources by copies
   * @throws GgmlException if there is not enough memory; everything is as it was then
   */
  static GraphStorage give(Graph graph, boolean keepSources, Giver giver) {
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
        GraphStorage storage = record(graph, keepSources);
        if (!giver.give()) {
          storage.restore();
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

  private static boolean needsMemory(long tensor) {
    return Native.buffer(tensor) == 0 || Native.data(tensor) == 0;
  }

  private static GraphStorage record(Graph graph, boolean keepSources) {
    LongList members = graph.snapshot();
    LongList tensors = new LongList();
    LongList before = new LongList();
    LongList sources = new LongList();
    List<Context> owners = new ArrayList<>();
    for (int i = 0; i < members.size(); i++) {
      long tensor = members.get(i);
      boolean needs = needsMemory(tensor);
      if (!needs && !keepSources) {
        continue;
      }
      tensors.add(tensor);
      owners.add(graph.context().ownerOf(tensor));
      // A view of storage that has no memory either may hold an address that is no longer true.
      boolean valid = !needs || TensorData.isAllocated(tensor);
      if (!valid) {
        Native.place(tensor, 0, 0);
      }
      before.add(Native.buffer(tensor));
      before.add(Native.data(tensor));
      for (int src = 0; keepSources && src < Native.MAX_SRC; src++) {
        sources.add(Native.src(tensor, src));
      }
    }
    return new GraphStorage(graph, tensors, owners, before, sources);
  }

  private void restore() {
    for (int i = 0; i < tensors.size(); i++) {
      restore(i);
    }
  }

  private void restore(int index) {
    long tensor = tensors.get(index);
    Native.place(tensor, before.get(2 * index), before.get(2 * index + 1));
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
