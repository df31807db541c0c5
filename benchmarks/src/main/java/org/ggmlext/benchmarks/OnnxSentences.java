package org.ggmlext.benchmarks;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Map;
import org.ggmlext.examples.minilm.MiniLm;
import org.ggmlext.examples.minilm.TokenBatch;

/** MiniLM on ONNX Runtime, as its users run it: batches without padding in, embeddings out. */
final class OnnxSentences implements AutoCloseable {
  static final String F32 = "all-minilm-l6-v2.onnx";
  static final String INT8 = "all-minilm-l6-v2-q.onnx";

  private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
  private final OrtSession session;

  OnnxSentences(String model, int threads) throws IOException, OrtException {
    try (InputStream in = OnnxSentences.class.getClassLoader().getResourceAsStream(model);
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      if (in == null) {
        throw new FileNotFoundException(model + " is not on the class path");
      }
      options.setIntraOpNumThreads(threads);
      options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.ALL_OPT);
      session = environment.createSession(in.readAllBytes(), options);
    }
  }

  /** The embedding of each sequence: the mean of its tokens' last hidden states, of length 1. */
  float[][] encode(TokenBatch batch) throws OrtException {
    int tokens = batch.ids().length;
    long[] ids = new long[tokens];
    for (int i = 0; i < tokens; i++) {
      ids[i] = batch.ids()[i];
    }
    long[] ones = new long[tokens];
    Arrays.fill(ones, 1);
    long[] shape = {batch.sequences(), batch.length()};
    try (OnnxTensor inputIds = tensor(ids, shape);
        OnnxTensor attentionMask = tensor(ones, shape);
        OnnxTensor tokenTypeIds = tensor(new long[tokens], shape);
        OrtSession.Result result =
            session.run(
                Map.of(
                    "input_ids", inputIds,
                    "attention_mask", attentionMask,
                    "token_type_ids", tokenTypeIds))) {
      FloatBuffer states = ((OnnxTensor) result.get(0)).getFloatBuffer();
      float[][] embeddings = new float[batch.sequences()][];
      for (int s = 0; s < embeddings.length; s++) {
        embeddings[s] = pool(states, s * batch.length(), batch.length());
      }
      return embeddings;
    }
  }

  private OnnxTensor tensor(long[] values, long[] shape) throws OrtException {
    return OnnxTensor.createTensor(environment, LongBuffer.wrap(values), shape);
  }

  private static float[] pool(FloatBuffer states, int first, int count) {
    float[] sum = new float[MiniLm.HIDDEN];
    float[] state = new float[MiniLm.HIDDEN];
    for (int token = first; token < first + count; token++) {
      states.get(token * MiniLm.HIDDEN, state);
      for (int i = 0; i < sum.length; i++) {
        sum[i] += state[i];
      }
    }
    double squares = 0;
    for (float value : sum) {
      squares += value * value;
    }
    float factor = (float) (1 / Math.sqrt(squares));
    for (int i = 0; i < sum.length; i++) {
      sum[i] *= factor;
    }
    return sum;
  }

  @Override
  public void close() throws IOException {
    try {
      session.close();
    } catch (OrtException e) {
      throw new IOException(e);
    }
  }
}
