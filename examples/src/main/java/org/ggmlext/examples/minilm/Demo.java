package org.ggmlext.examples.minilm;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;

/**
 * Embeds sentences and prints how alike they are, what computed them, and how fast, with the
 * extensions and without.
 */
public final class Demo {
  private static final String INT8 = "--int8";

  private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private final Progress progress = new Progress(System.err);

  private Demo() {}

  /**
   * @param args the sentences; before them {@code --int8}: extensions compute dense layers in INT8
   */
  public static void main(String[] args) {
    boolean int8 = args.length > 0 && args[0].equals(INT8);
    List<String> sentences = List.of(args).subList(int8 ? 1 : 0, args.length);
    if (sentences.isEmpty() || sentences.getFirst().startsWith("-")) {
      System.err.println("usage: demo [" + INT8 + "] SENTENCE...");
      System.exit(2);
    }
    try {
      new Demo().run(sentences, int8);
    } catch (IOException | GgmlException | IllegalArgumentException e) {
      System.err.println("demo: " + e.getMessage());
      System.exit(1);
    }
  }

  private void run(List<String> sentences, boolean int8) throws IOException {
    progress.show("reading the tokenizer");
    TokenBatch batch;
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS)) {
      batch = TokenBatch.of(tokenizer.encode(sentences));
    }
    progress.show("reading the weights");
    MiniLmWeights<Weight> weights = MiniLmWeights.load();

    progress.show("loading ggml");
    Speed plain;
    try (MiniLmEncoder encoder = new MiniLmEncoder(weights, false)) {
      progress.show("measuring ggml alone");
      plain = Speed.measure(encoder, batch);
    }
    try (MiniLmEncoder encoder =
        int8
            ? MiniLmInt8.encoder(weights, Runtime.getRuntime().availableProcessors())
            : new MiniLmEncoder(weights, true)) {
      progress.show("measuring ggml with extensions");
      Speed extended = Speed.measure(encoder, batch);
      float[][] embeddings = encoder.encode(batch);
      progress.clear();

      out.println("ggml " + Ggml.load().version() + ", " + batch.tokens() + " tokens");
      out.println();
      SimilarityTable.print(sentences, embeddings, out);
      out.println();
      KernelTable.print(encoder.plans().getFirst(), out);
      out.println();
      out.printf("extensions off  %,9.0f tokens/s%n", plain.tokensPerSecond());
      out.printf(
          "extensions on   %,9.0f tokens/s  (x %.2f)%n",
          extended.tokensPerSecond(), extended.tokensPerSecond() / plain.tokensPerSecond());
    } finally {
      progress.clear();
    }
  }
}
