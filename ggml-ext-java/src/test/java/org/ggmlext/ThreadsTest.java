package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ThreadsTest {
  private Device cpu;

  @BeforeEach
  void load() {
    cpu = Ggml.load().device("CPU");
  }

  @Test
  @DisplayName("JAVA-2: two threads compute with two schedulers on one device, weights shared")
  void twoSchedulers() throws Exception {
    try (Context weights = Context.forTensors(1);
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Tensor w = weights.newTensor(Type.F32, 16, 16);
      weights.allocate(cpu).asWeights();
      w.setFloats(ones(256));
      joinAll(threads, 2, () -> computeOften(w, 50));
    }
  }

  @Test
  @DisplayName("JAVA-2: virtual threads compute, each with a scheduler of its own")
  void virtualThreads() throws Exception {
    try (Context weights = Context.forTensors(1);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Tensor w = weights.newTensor(Type.F32, 16, 16);
      weights.allocate(cpu);
      w.setFloats(ones(256));
      joinAll(threads, 8, () -> computeOften(w, 10));
    }
  }

  @Test
  @DisplayName("JAVA-2: threads that share one scheduler wait for each other")
  void oneScheduler() throws Exception {
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend);
        Context context = Context.forGraph(64);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      try (Context weights = Context.forTensors(1)) {
        Tensor w = weights.newTensor(Type.F32, 4);
        weights.allocate(cpu);
        w.setFloats(1, 2, 3, 4);
        joinAll(
            threads,
            4,
            () -> {
              Graph graph = context.newGraph(4).expand(context.sqr(w));
              for (int i = 0; i < 20; i++) {
                scheduler.compute(graph);
              }
              return null;
            });
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: reading results races with schedulers that take the memory away")
  void readersAndResets() throws Exception {
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend);
        Context context = Context.forGraph(8);
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Tensor a = context.newTensor(Type.F32, 10_000).asInput();
      Tensor square = context.sqr(a).asOutput();
      Graph graph = context.newGraph(4).expand(square);
      Future<Integer> reads =
          threads.submit(
              () -> {
                int count = 0;
                for (int i = 0; i < 2000; i++) {
                  try {
                    count += square.getFloats().length == 10_000 ? 1 : 0;
                  } catch (IllegalStateException e) {
                    // Just now it has no memory.
                  }
                }
                return count;
              });
      for (int i = 0; i < 200; i++) {
        scheduler.allocate(graph);
        scheduler.compute(graph);
        scheduler.reset();
      }
      assertThat(reads.get()).isNotNegative();
    }
  }

  @Test
  @DisplayName("JAVA-2: a graph grows while schedulers of other threads compute it")
  void expansionAndComputes() throws Exception {
    try (Context weights = Context.forTensors(1);
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      Tensor w = weights.newTensor(Type.F32, 4);
      weights.allocate(cpu);
      w.setFloats(1, 1, 1, 1);
      for (int i = 0; i < 20; i++) {
        growAndCompute(w, threads);
      }
    }
  }

  private void growAndCompute(Tensor w, ExecutorService threads) throws Exception {
    try (Context context = Context.forGraph(1000);
        Backend backend = cpu.newBackend().threads(1);
        Scheduler scheduler = Scheduler.of(backend)) {
      Graph graph = context.newGraph(500).expand(context.sqr(w));
      Future<Tensor> last =
          threads.submit(
              () -> {
                Tensor next = w;
                for (int i = 0; i < 400; i++) {
                  next = context.sqr(next).asOutput();
                  graph.expand(next);
                }
                return next;
              });
      while (!last.isDone()) {
        scheduler.compute(graph);
      }
      scheduler.compute(graph);
      assertThat(last.get().getFloats()).containsExactly(1, 1, 1, 1);
    }
  }

  private Void computeOften(Tensor w, int times) {
    try (Backend backend = cpu.newBackend();
        Scheduler scheduler = Scheduler.of(backend)) {
      for (int i = 0; i < times; i++) {
        try (Context context = Context.forGraph(8)) {
          Tensor x = context.newTensor(Type.F32, 16).asInput();
          Tensor product = context.mulMat(w, x).asOutput();
          Graph graph = context.newGraph(8).expand(product);
          scheduler.allocate(graph);
          x.setFloats(ones(16));
          scheduler.compute(graph);
          assertThat(product.getFloats()).hasSize(16).containsOnly(16);
        }
      }
    }
    return null;
  }

  private static float[] ones(int count) {
    float[] ones = new float[count];
    Arrays.fill(ones, 1);
    return ones;
  }

  private static void joinAll(ExecutorService threads, int count, Callable<Void> task)
      throws InterruptedException, ExecutionException {
    List<Future<Void>> futures = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      futures.add(threads.submit(task));
    }
    for (Future<Void> future : futures) {
      future.get();
    }
  }
}
