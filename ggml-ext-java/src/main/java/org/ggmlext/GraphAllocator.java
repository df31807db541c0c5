package org.ggmlext;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;
import org.ggmlext.bindings.ggml_alloc_h;
import org.ggmlext.bindings.ggml_backend_h;
import org.ggmlext.internal.Lifetime;
import org.jspecify.annotations.Nullable;

/**
 * Gives the tensors of one graph at a time memory on one device, for {@link Backend#compute}. A
 * {@link Scheduler} does that too, and more; this is for whoever needs one backend only.
 *
 * <p>Safe for use by several threads.
 */
public final class GraphAllocator implements AutoCloseable {
  private final Device device;
  private MemorySegment handle;
  private final Lifetime lifetime = new Lifetime("the graph allocator", this::free);
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable GraphStorage storage;

  private GraphAllocator(Device device) {
    this.device = device;
    this.handle = newHandle();
  }

  private MemorySegment newHandle() {
    return ggml_alloc_h.ggml_gallocr_new(
        ggml_backend_h.ggml_backend_dev_buffer_type(device.handle()));
  }

  /** An allocator of a device's memory. */
  public static GraphAllocator of(Device device) {
    return new GraphAllocator(device);
  }

  /**
   * Gives memory to all tensors of a graph that have none, and takes it from the graph that had it.
   *
   * @throws GgmlException if there is not enough memory
   * @throws IllegalStateException if the allocator or a context is closed, or the graph is empty
   */
  public void allocate(Graph graph) {
    lifetime.begin();
    lock.lock();
    try (Graph.Use _ = graph.use();
        Context.Hold _ = graph.context().hold()) {
      GraphCheck.notEmpty(graph);
      take();
      storage = GraphStorage.give(graph, GraphStorage.Sources.LEFT, () -> give(graph));
    } finally {
      lock.unlock();
      lifetime.end();
    }
  }

  private boolean give(Graph graph) {
    if (ggml_alloc_h.ggml_gallocr_alloc_graph(handle, graph.kept())) {
      return true;
    }
    // An allocator that once got no memory believes from then on that it has it.
    ggml_alloc_h.ggml_gallocr_free(handle);
    handle = newHandle();
    return false;
  }

  /**
   * Bytes of the buffer.
   *
   * @throws IllegalStateException if the allocator is closed
   */
  public long bufferSize() {
    lifetime.begin();
    lock.lock();
    try {
      return ggml_alloc_h.ggml_gallocr_get_buffer_size(handle, 0);
    } finally {
      lock.unlock();
      lifetime.end();
    }
  }

  /**
   * Takes the memory from the graph that has it and frees it, once no other thread uses this.
   * Harmless if done before.
   */
  @Override
  public void close() {
    lifetime.close();
  }

  private void take() {
    GraphStorage old = storage;
    storage = null;
    if (old != null) {
      old.take();
    }
  }

  private void free() {
    take();
    ggml_alloc_h.ggml_gallocr_free(handle);
  }
}
