package org.ggmlext.benchmarks;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import org.ggmlext.examples.minilm.TokenBatch;

/**
 * Sentence embeddings on one thread, in processor time of that thread: the fastest of many batches,
 * all engines taking turns in one JVM. So a machine that does other work too gives figures that can
 * be compared; they say nothing about several threads.
 */
public final class ProcessorTime {
  private static final long WARM_UP_NS = 3_000_000_000L;
  private static final int ROUNDS = 20;

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

  private ProcessorTime() {}

  /**
   * @param args none
   */
  public static void main(String[] args) throws Exception {
    new ProcessorTime().run();
  }

  private void run() throws Exception {
    System.out.println("| batch | tokens | engine | sentences a second of processor time |");
    System.out.println("|---|---|---|---|");
    for (int sequences : new int[] {1, 32}) {
      for (int tokens : new int[] {16, 128}) {
        measure(Sentences.batch(sequences, tokens))
            .forEach(
                (engine, nanos) ->
                    System.out.printf(
                        Locale.ROOT,
                        "| %d | %d | %s | %.1f |%n",
                        sequences,
                        tokens,
                        engine,
                        sequences * 1e9 / nanos));
      }
    }
  }

  private Map<Engine, Long> measure(TokenBatch batch) throws Exception {
    Map<Engine, Sentences> engines = new EnumMap<>(Engine.class);
    Map<Engine, Long> fastest = new EnumMap<>(Engine.class);
    try {
      for (Engine engine : Engine.values()) {
        Sentences sentences = Sentences.of(engine, 1);
        engines.put(engine, sentences);
        for (long used = 0; used < WARM_UP_NS; ) {
          used += time(sentences, batch);
        }
      }
      for (int round = 0; round < ROUNDS; round++) {
        for (Map.Entry<Engine, Sentences> entry : engines.entrySet()) {
          fastest.merge(entry.getKey(), time(entry.getValue(), batch), Math::min);
        }
      }
    } finally {
      for (Sentences sentences : engines.values()) {
        sentences.close();
      }
    }
    return fastest;
  }

  private long time(Sentences sentences, TokenBatch batch) throws Exception {
    long start = threads.getCurrentThreadCpuTime();
    sentences.encode(batch);
    return threads.getCurrentThreadCpuTime() - start;
  }
}
