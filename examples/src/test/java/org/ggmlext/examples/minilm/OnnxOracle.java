package org.ggmlext.examples.minilm;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.IOException;
import java.io.InputStream;
import java.nio.LongBuffer;
import java.util.Map;

/**
 * The reference: ONNX Runtime on the same model file, one sequence at a time, so that nothing is
 * ever padded; mean and norm in double precision.
 */
final class OnnxOracle implements AutoCloseable {

  private final OrtEnvironment environment = OrtEnvironment.getEnvironment();
  private final OrtSession session;

  OnnxOracle() throws IOException, OrtException {
    try (InputStream in = MiniLm.openWeights();
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      options.setIntraOpNumThreads(2);
      session = environment.createSession(in.readAllBytes(), options);
    }
  }

  /** The embedding of one sequence: the mean of its tokens' last hidden states, of length 1. */
  double[] embed(int[] ids) throws OrtException {
    long[] tokens = new long[ids.length];
    long[] ones = new long[ids.length];
    long[] zeros = new long[ids.length];
    for (int i = 0; i < ids.length; i++) {
      tokens[i] = ids[i];
      ones[i] = 1;
    }
    try (OnnxTensor inputIds = tensor(tokens);
        OnnxTensor attentionMask = tensor(ones);
        OnnxTensor tokenTypeIds = tensor(zeros);
        OrtSession.Result result =
            session.run(
                Map.of(
                    "input_ids", inputIds,
                    "attention_mask", attentionMask,
                    "token_type_ids", tokenTypeIds))) {
      return pool(((float[][][]) result.get(0).getValue())[0]);
    }
  }

  /** Cosine of the angle between an embedding and a reference. */
  static double cosine(float[] embedding, double[] reference) {
    double dot = 0;
    double embeddingSquares = 0;
    double referenceSquares = 0;
    for (int i = 0; i < reference.length; i++) {
      dot += embedding[i] * reference[i];
      embeddingSquares += (double) embedding[i] * embedding[i];
      referenceSquares += reference[i] * reference[i];
    }
    return dot / Math.sqrt(embeddingSquares * referenceSquares);
  }

  @Override
  public void close() throws OrtException {
    session.close();
  }

  private OnnxTensor tensor(long[] values) throws OrtException {
    return OnnxTensor.createTensor(
        environment, LongBuffer.wrap(values), new long[] {1, values.length});
  }

  private static double[] pool(float[][] states) {
    double[] sum = new double[MiniLm.HIDDEN];
    for (float[] state : states) {
      for (int i = 0; i < sum.length; i++) {
        sum[i] += state[i];
      }
    }
    double squares = 0;
    for (double value : sum) {
      squares += value * value;
    }
    double norm = Math.sqrt(squares);
    for (int i = 0; i < sum.length; i++) {
      sum[i] /= norm;
    }
    return sum;
  }
}
