package org.ggmlext.examples.minilm;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Plan;
import org.jspecify.annotations.Nullable;

/**
 * MiniLM on ggml's CPU: token batches in, embeddings out. Safe for use by several threads; batches
 * are computed one after the other, each on all threads.
 */
public final class MiniLmEncoder implements AutoCloseable {
  private static final int TENSORS = 160;

  private final Ggml ggml;
  private final @Nullable MiniLmExtensions extensions;
  private final Context weightContext;
  private final MiniLmWeights<Tensor> weights;
  private final Backend backend;
  private final Scheduler scheduler;
  private @Nullable MiniLmGraph lastGraph;
  private boolean closed;

  /** Makes the tensors of the weights on a device. */
  private interface Upload {
    MiniLmWeights<Tensor> into(Context context, Device device);
  }

  private MiniLmEncoder(Upload upload, boolean extended, int threads) {
    this(upload, extended, device -> device.newBackend(), threads);
  }

  private MiniLmEncoder(
      Upload upload, boolean extended, Function<Device, Backend> backends, int threads) {
    if (threads < 1) {
      throw new IllegalArgumentException("threads is " + threads + ", expected at least 1");
    }
    ggml = Ggml.load();
    Device cpu = ggml.device(DeviceType.CPU);
    MiniLmExtensions registered = null;
    Backend made = null;
    weightContext = Context.forTensors(TENSORS);
    try {
      weights = upload.into(weightContext, cpu);
      registered = extended ? MiniLmExtensions.register(ggml) : null;
      made = backends.apply(cpu);
      scheduler = Scheduler.of(made.threads(threads));
    } catch (RuntimeException | Error e) {
      if (made != null) {
        made.close();
      }
      weightContext.close();
      if (registered != null) {
        registered.close();
      }
      throw e;
    }
    extensions = registered;
    backend = made;
  }

  /** An encoder on as many threads as there are cores; see the other constructor. */
  public MiniLmEncoder(MiniLmWeights<Weight> weights, boolean extended) {
    this(weights, extended, Runtime.getRuntime().availableProcessors());
  }

  /**
   * Loads ggml if need be and moves the weights to the CPU backend.
   *
   * @param extended whether MiniLM's extensions are registered and used
   * @param threads threads of a batch's computation, at least 1; more than cores count as cores
   * @throws org.ggmlext.GgmlException if ggml or the extensions cannot be loaded
   */
  public MiniLmEncoder(MiniLmWeights<Weight> weights, boolean extended, int threads) {
    this((context, device) -> upload(weights, context, device), extended, threads);
  }

  /** As the constructor for all, on a backend that the function makes; it is closed in any case. */
  static MiniLmEncoder on(
      Function<Device, Backend> backends, MiniLmWeights<Weight> weights, int threads) {
    return new MiniLmEncoder(
        (context, device) -> upload(weights, context, device), true, backends, threads);
  }

  /**
   * An encoder with dense layers in INT8. Extensions compute them, so they are used.
   *
   * @param file what {@link MiniLmInt8#write} wrote; is not needed afterwards
   * @param threads as above
   * @throws org.ggmlext.GgmlException if ggml or the extensions cannot be loaded, the file cannot
   *     be read, or is not MiniLM
   */
  public static MiniLmEncoder int8(Path file, int threads) {
    return new MiniLmEncoder(
        (context, device) ->
            MiniLmInt8.read(file, context, () -> context.allocate(device).asWeights()),
        true,
        threads);
  }

  private static MiniLmWeights<Tensor> upload(
      MiniLmWeights<Weight> weights, Context context, Device device) {
    List<Runnable> copies = new ArrayList<>();
    MiniLmWeights<Tensor> tensors =
        weights.map(
            weight -> {
              Tensor tensor =
                  context.newTensor(Type.F32, weight.ne0(), weight.ne1()).name(weight.name());
              copies.add(() -> tensor.setFloats(weight.data()));
              return tensor;
            });
    context.allocate(device).asWeights();
    copies.forEach(Runnable::run);
    return tensors;
  }

  /**
   * The embeddings of a batch's sequences, in their order: {@link MiniLm#HIDDEN} values each, of
   * length 1.
   *
   * @throws org.ggmlext.GgmlException if the compute fails
   * @throws IllegalStateException if the encoder is closed
   */
  public synchronized float[][] encode(TokenBatch batch) {
    checkOpen();
    MiniLmGraph graph = graphOf(batch.length(), batch.sequences(), batch.padded());
    graph.ids().setInts(batch.ids());
    Tensor mask = graph.mask();
    if (mask != null) {
      mask.setFloats(batch.attentionMask());
    }
    if (extensions != null) {
      graph.lengths().setInts(batch.lengths());
    } else {
      graph.lengths().setFloats(batch.meanWeights());
    }
    scheduler.compute(graph.graph());
    float[] all = graph.embeddings().getFloats();
    float[][] embeddings = new float[batch.sequences()][];
    for (int s = 0; s < embeddings.length; s++) {
      embeddings[s] = Arrays.copyOfRange(all, s * MiniLm.HIDDEN, (s + 1) * MiniLm.HIDDEN);
    }
    return embeddings;
  }

  /** The graph of the batch before, where that had the same sizes, or a new one. */
  private MiniLmGraph graphOf(int length, int sequences, boolean padded) {
    MiniLmGraph last = lastGraph;
    if (last != null && last.fits(length, sequences, padded)) {
      return last;
    }
    forgetGraph();
    MiniLmGraph graph = MiniLmGraph.build(weights, length, sequences, padded, extensions != null);
    try {
      scheduler.allocate(graph.graph());
    } catch (RuntimeException | Error e) {
      graph.close();
      throw e;
    }
    lastGraph = graph;
    return graph;
  }

  private void forgetGraph() {
    if (lastGraph != null) {
      scheduler.reset();
      lastGraph.close();
      lastGraph = null;
    }
  }

  /**
   * Sets what is asked between nodes and phases whether to give a batch up, which then fails.
   *
   * @param abort called on a computing thread, or null for none
   * @throws IllegalStateException if the encoder is closed
   */
  public synchronized void setAbort(@Nullable BooleanSupplier abort) {
    checkOpen();
    backend.setAbort(abort);
  }

  /**
   * Which kernel ran each node of the batches so far; empty without extensions.
   *
   * @throws IllegalStateException if the encoder is closed
   */
  public synchronized List<Plan> plans() {
    checkOpen();
    return extensions == null ? List.of() : Extensions.attach(ggml).plans(backend);
  }

  /** Harmless if done before. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    forgetGraph();
    scheduler.close();
    backend.close();
    weightContext.close();
    if (extensions != null) {
      extensions.close();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the encoder is closed");
    }
  }
}
