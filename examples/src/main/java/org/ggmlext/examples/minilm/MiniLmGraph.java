package org.ggmlext.examples.minilm;

import static org.ggmlext.examples.minilm.MiniLm.HEAD;
import static org.ggmlext.examples.minilm.MiniLm.HEADS;
import static org.ggmlext.examples.minilm.MiniLm.HIDDEN;
import static org.ggmlext.examples.minilm.MiniLm.NORM_EPSILON;

import org.ggmlext.Context;
import org.ggmlext.Graph;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.examples.minilm.MiniLmWeights.Dense;
import org.ggmlext.examples.minilm.MiniLmWeights.Layer;
import org.ggmlext.examples.minilm.MiniLmWeights.Norm;
import org.ggmlext.ext.ops.Int8Layer;
import org.ggmlext.ext.ops.LinearI8;
import org.jspecify.annotations.Nullable;

/**
 * The graph that embeds one batch. Shapes are in ggml's order: a hidden state is {@code [HIDDEN, L,
 * B]} for B sequences of L tokens, padding included.
 *
 * @param context owns the graph and its tensors, without their memory
 * @param ids {@code [L * B]} I32
 * @param mask {@code [L, L, 1, B]} F16, added to the attention scores: 0, or negative infinity
 *     where the key is padding; null for batches without padding
 * @param lengths what the pooling needs: with extensions {@code [B]} I32, the real tokens of each
 *     sequence, else {@code [L, 1, B]} F32, each token's weight in the mean
 * @param embeddings {@code [HIDDEN, B]}
 */
record MiniLmGraph(
    Context context,
    Graph graph,
    Tensor ids,
    @Nullable Tensor mask,
    Tensor lengths,
    Tensor embeddings)
    implements AutoCloseable {

  private static final int MAX_NODES = 512;

  /**
   * Builds the graph.
   *
   * @param padded whether a sequence may be shorter than {@code length}
   * @param extended whether the operators of {@link MiniLmExtensions} are used; they must be
   *     registered
   */
  static MiniLmGraph build(
      MiniLmWeights<Tensor> weights, int length, int sequences, boolean padded, boolean extended) {
    Context context = Context.forGraph(MAX_NODES);
    try {
      return new Builder(context, length, sequences, padded, extended).build(weights);
    } catch (RuntimeException | Error e) {
      context.close();
      throw e;
    }
  }

  /** Whether it was built for a batch of these sizes. */
  boolean fits(int length, int sequences, boolean padded) {
    return ids.ne(0) == (long) length * sequences
        && embeddings.ne(1) == sequences
        && (mask != null) == padded;
  }

  @Override
  public void close() {
    context.close();
  }

  private static final class Builder {
    private final Context ggml;
    private final int length;
    private final int sequences;
    private final boolean extended;
    private final Tensor ids;
    private final @Nullable Tensor mask;
    private final Tensor lengths;

    Builder(Context ggml, int length, int sequences, boolean padded, boolean extended) {
      this.ggml = ggml;
      this.length = length;
      this.sequences = sequences;
      this.extended = extended;
      ids = ggml.newTensor(Type.I32, (long) length * sequences).name("ids").asInput();
      mask =
          padded
              ? ggml.newTensor(Type.F16, length, length, 1, sequences).name("mask").asInput()
              : null;
      lengths =
          (extended
                  ? ggml.newTensor(Type.I32, sequences)
                  : ggml.newTensor(Type.F32, length, 1, sequences))
              .name("lengths")
              .asInput();
    }

    MiniLmGraph build(MiniLmWeights<Tensor> weights) {
      Tensor state = embed(weights);
      for (Layer<Tensor> layer : weights.layers()) {
        state = layer(state, layer);
      }
      Tensor embeddings = pool(state).name("embeddings").asOutput();
      Graph graph = ggml.newGraph(MAX_NODES);
      graph.expand(embeddings);
      return new MiniLmGraph(ggml, graph, ids, mask, lengths, embeddings);
    }

    private Tensor embed(MiniLmWeights<Tensor> weights) {
      Tensor words =
          ggml.reshape(ggml.getRows(weights.wordEmbeddings(), ids), HIDDEN, length, sequences);
      Tensor positions = rows(weights.positionEmbeddings(), length);
      Tensor type = rows(weights.tokenTypeEmbeddings(), 1);
      return norm(ggml.add(ggml.add(words, positions), type), weights.embeddingNorm());
    }

    private Tensor rows(Tensor table, int count) {
      return ggml.view2d(table, HIDDEN, count, table.nb(1), 0);
    }

    private Tensor layer(Tensor state, Layer<Tensor> layer) {
      Tensor attended = attention(state, layer);
      Tensor middle = residualNorm(attended, layer.attentionOutput(), state, layer.attentionNorm());
      Tensor inner = ggml.geluErf(dense(middle, layer.feedForwardInner()));
      return residualNorm(inner, layer.feedForwardOutput(), middle, layer.outputNorm());
    }

    private Tensor attention(Tensor state, Layer<Tensor> layer) {
      Tensor all = dense(state, layer.queryKeyValue());
      Tensor query = heads(all, 0);
      Tensor key = heads(all, 1);
      Tensor value = heads(all, 2);
      Tensor mixed =
          ggml.flashAttnExt(query, key, value, mask, (float) (1 / Math.sqrt(HEAD)), 0, 0);
      return ggml.reshape(mixed, HIDDEN, length, sequences);
    }

    // The third of [3 * HIDDEN, L, B] that follows `part` others, as [HEAD, L, HEADS, B]
    private Tensor heads(Tensor all, int part) {
      long head = HEAD * (long) Float.BYTES;
      return ggml.view4d(
          all,
          Shape.of(HEAD, length, HEADS, sequences),
          all.nb(1),
          head,
          all.nb(2),
          part * HEADS * head);
    }

    private Tensor dense(Tensor x, Dense<Tensor> dense) {
      return dense.scale() == null
          ? ggml.add(ggml.mulMat(dense.matrix(), x), dense.bias())
          : int8(x, dense, dense.bias());
    }

    private Tensor product(Tensor x, Dense<Tensor> dense) {
      return dense.scale() == null ? ggml.mulMat(dense.matrix(), x) : int8(x, dense, null);
    }

    private Tensor int8(Tensor x, Dense<Tensor> dense, @Nullable Tensor bias) {
      LinearI8 linear = new LinearI8(dense.matrix(), dense.scale(), bias);
      return new Int8Layer(linear, dense.group()).apply(ggml, x);
    }

    private Tensor residualNorm(Tensor x, Dense<Tensor> dense, Tensor residual, Norm<Tensor> norm) {
      if (!extended) {
        return norm(ggml.add(dense(x, dense), residual), norm);
      }
      return ResidualNorm.OPERATOR.create(
          ggml,
          new ResidualNorm.Attributes(NORM_EPSILON),
          product(x, dense),
          dense.bias(),
          residual,
          norm.scale(),
          norm.shift());
    }

    private Tensor norm(Tensor x, Norm<Tensor> norm) {
      return ggml.add(ggml.mul(ggml.norm(x, NORM_EPSILON), norm.scale()), norm.shift());
    }

    private Tensor pool(Tensor state) {
      if (extended) {
        return PoolNormalize.OPERATOR.create(ggml, state, lengths);
      }
      Tensor mean = ggml.mulMat(ggml.cont(ggml.transpose(state)), lengths);
      return ggml.reshape(ggml.l2Norm(mean, NORM_EPSILON), HIDDEN, sequences);
    }
  }
}
