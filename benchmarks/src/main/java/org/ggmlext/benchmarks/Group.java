package org.ggmlext.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.ggmlext.benchmarks.Figure.Nanos;
import org.ggmlext.benchmarks.Figure.PerSecond;

/** The comparisons, by subject. */
enum Group {
  CALLS {
    @Override
    List<Comparison> comparisons(Pace pace) {
      Side javaToJava = call("Java method, not inlined", "javaToJava");
      Side cToC = call("C function by pointer", "cToC");
      return List.of(
          new Comparison("downcall", javaToJava, call("plain", "javaToC"), new Nanos(1), ""),
          new Comparison(
              "downcall", javaToJava, call("critical", "javaToCCritical"), new Nanos(1), ""),
          new Comparison(
              "upcall, attached thread", cToC, call("Java method", "cToJava"), new Nanos(1), ""));
    }
  },

  KERNELS {
    @Override
    List<Comparison> comparisons(Pace pace) {
      List<Comparison> comparisons = new ArrayList<>();
      for (int threads = 1; threads <= pace.threads(); threads++) {
        comparisons.add(
            kernel(Work.AFFINE, Size.TINY, threads, Author.C, Author.JAVA, "<= 60 ns more"));
        comparisons.add(
            kernel(Work.AFFINE, Size.TINY, threads, Author.DIRECT, Author.C, "no difference"));
        comparisons.add(kernel(Work.AFFINE, Size.ROWS, threads, Author.C, Author.JAVA, "<= 1.2"));
        comparisons.add(kernel(Work.RMS_NORM, Size.ROWS, threads, Author.C, Author.JAVA, "<= 1.2"));
      }
      return comparisons;
    }
  },

  UNREGISTERED {
    @Override
    List<Comparison> comparisons(Pace pace) {
      return List.of(
          unregistered("512 nodes of 32 bytes, a node", "compute", "TINY", 512),
          unregistered("MUL_MAT 256x256x32, a node", "compute", "MUL_MAT", 16),
          unregistered(
              "allocate and compute 512 nodes, a node", "allocateAndCompute", "TINY", 512));
    }
  },

  SENTENCES {
    @Override
    List<Comparison> comparisons(Pace pace) {
      List<Comparison> comparisons = new ArrayList<>();
      for (int sequences : new int[] {1, 32}) {
        for (int tokens : new int[] {16, 128}) {
          Side onnx = encode("ONNX Runtime F32", Engine.ONNX, sequences, tokens);
          Side ggml = encode("ggml", Engine.GGML, sequences, tokens);
          Side extended = encode("ggml, extensions on", Engine.EXTENDED, sequences, tokens);
          String title =
              "MiniLM sentences a second, batch %d, %d tokens".formatted(sequences, tokens);
          PerSecond figure = new PerSecond(sequences);
          comparisons.add(new Comparison(title, ggml, extended, figure, ">= 1"));
          comparisons.add(new Comparison(title, onnx, extended, figure, ""));
          comparisons.add(new Comparison(title, onnx, ggml, figure, ""));
        }
      }
      return comparisons;
    }
  },

  INT8 {
    @Override
    List<Comparison> comparisons(Pace pace) {
      List<Comparison> comparisons = new ArrayList<>();
      for (Class<?> callers : List.of(SentenceBenchmark.class, TwoCallersBenchmark.class)) {
        boolean two = callers == TwoCallersBenchmark.class;
        for (int sequences : new int[] {1, 32}) {
          for (int tokens : new int[] {16, 128}) {
            Side onnx = encode(callers, "ONNX Runtime F32", Engine.ONNX, sequences, tokens);
            Side onnxInt8 =
                encode(callers, "ONNX Runtime INT8", Engine.ONNX_INT8, sequences, tokens);
            Side f32 = encode(callers, "ggml, extensions on", Engine.EXTENDED, sequences, tokens);
            Side int8 = encode(callers, "the same in INT8", Engine.INT8, sequences, tokens);
            String title =
                "MiniLM sentences a second, batch %d, %d tokens%s"
                    .formatted(sequences, tokens, two ? ", two callers of one thread" : "");
            PerSecond figure = new PerSecond(two ? 2 * sequences : sequences);
            comparisons.add(new Comparison(title, onnxInt8, int8, figure, ">= 1"));
            comparisons.add(new Comparison(title, f32, int8, figure, ""));
            comparisons.add(new Comparison(title, onnx, f32, figure, ">= 1"));
          }
        }
      }
      return comparisons;
    }
  };

  /** The comparisons of this subject, those that share sides next to each other. */
  abstract List<Comparison> comparisons(Pace pace);

  /** The name for the command line. */
  String argument() {
    return name().toLowerCase(Locale.ROOT);
  }

  private static Side call(String label, String method) {
    return new Side(label, CallBenchmark.class, method, Map.of());
  }

  private static Comparison kernel(
      Work work, Size size, int threads, Author baseline, Author measured, String goal) {
    String title =
        "%s, %s, a node, %d thread%s"
            .formatted(
                work.name().toLowerCase(Locale.ROOT),
                size == Size.TINY ? "32 bytes" : "4 rows of 64 KiB",
                threads,
                threads == 1 ? "" : "s");
    return new Comparison(
        title,
        kernel(work, size, threads, baseline),
        kernel(work, size, threads, measured),
        new Nanos(size.nodes()),
        goal);
  }

  private static Side kernel(Work work, Size size, int threads, Author author) {
    String label =
        switch (author) {
          case JAVA -> "Java kernel";
          case C -> "C kernel registered from Java";
          case DIRECT -> "C kernel registered from C";
        };
    return new Side(
        label,
        KernelBenchmark.class,
        "compute",
        Map.of(
            "work", work.name(),
            "author", author.name(),
            "size", size.name(),
            "threads", Integer.toString(threads)));
  }

  private static Comparison unregistered(String title, String method, String shape, int nodes) {
    return new Comparison(
        title,
        unregistered("ggml unpatched", method, shape, false),
        unregistered("patched, nothing registered", method, shape, true),
        new Nanos(nodes),
        "<= 1.01");
  }

  private static Side unregistered(String label, String method, String shape, boolean attached) {
    return new Side(
        label,
        UnregisteredBenchmark.class,
        method,
        Map.of("shape", shape, "attached", Boolean.toString(attached)));
  }

  private static Side encode(String label, Engine engine, int sequences, int tokens) {
    return encode(SentenceBenchmark.class, label, engine, sequences, tokens);
  }

  private static Side encode(
      Class<?> callers, String label, Engine engine, int sequences, int tokens) {
    return new Side(
        label,
        callers,
        "encode",
        Map.of(
            "engine", engine.name(),
            "sequences", Integer.toString(sequences),
            "tokens", Integer.toString(tokens)));
  }
}
