package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What callbacks throw never reaches C, and reaches the caller of compute as the very same object.
 */
class FailureTest {
  private static final int WARM = 20_000;
  private static final int MANY = 600;

  private final Workbench bench = new Workbench();

  @AfterEach
  void close() {
    bench.close();
  }

  static Stream<Named<Supplier<Throwable>>> throwables() {
    return Stream.of(
        Named.of("RuntimeException", () -> new IllegalStateException("kernel says no")),
        Named.of("checked exception", () -> new IOException("kernel says no")),
        Named.of("OutOfMemoryError", () -> new OutOfMemoryError("kernel says no")),
        Named.of("StackOverflowError", FailureTest::overflow),
        Named.of("neither an exception nor an error", () -> new Throwable("kernel says no")),
        Named.of("one without a text", Mute::new));
  }

  /** Whatever is asked for its text fails again. */
  private static final class Mute extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String toString() {
      throw new IllegalStateException("no text");
    }
  }

  private static Throwable overflow() {
    return catchThrowable(() -> recurse(0));
  }

  private static int recurse(int depth) {
    return recurse(depth + 1) + 1;
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void sneak(Throwable throwable) throws T {
    throw (T) throwable;
  }

  private Tensor product() {
    Tensor x = bench.input(Workbench.values(64), 16, 4);
    return bench.nodes.mul(x, x);
  }

  @Test
  @DisplayName("JAVA-4: a compute that failed is told from one that was aborted")
  void failedIsNotAborted() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.throws"), "MUL")
            .run(
                task -> {
                  throw new IllegalStateException("GGML_STATUS_ABORTED");
                }));
    assertThatThrownBy(() -> bench.compute(product()))
        .isInstanceOfSatisfying(
            GgmlException.class, failed -> assertThat(failed.isAborted()).isFalse());
  }

  private void computesAgain() {
    assertThat(
            bench.compute(
                bench.nodes.add(bench.input(new float[] {1}, 1), bench.input(new float[] {2}, 1))))
        .containsExactly(3);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName("JAVA-4: what run throws is the cause, the same object, and the next compute works")
  void run(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    AtomicBoolean fails = new AtomicBoolean(true);
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.throws"), "MUL")
                .run(
                    task -> {
                      if (fails.get() && task.ith() == task.nth() - 1) {
                        FailureTest.<RuntimeException>sneak(thrown);
                      }
                      if (task.ith() == 0) {
                        task.dst().data().fill((byte) 0);
                      }
                    }));
    Graph graph = bench.graph(product());
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(kernel.name())
        .cause()
        .isSameAs(thrown);
    fails.set(false);
    bench.scheduler.compute(graph);
    computesAgain();
    assertThat(kernel.stats().failed()).isPositive();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName("JAVA-4: the same after 20,000 warm calls")
  void runWhenWarm(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    AtomicInteger calls = new AtomicInteger();
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.warm"), "MUL")
            .prepare(context -> Prepared.NOTHING.withMaxTasks(1))
            .run(
                task -> {
                  if (calls.incrementAndGet() > WARM) {
                    FailureTest.<RuntimeException>sneak(thrown);
                  }
                }));
    Graph graph = bench.graph(product());
    for (int i = 0; i < WARM; i++) {
      bench.scheduler.compute(graph);
    }
    assertThatThrownBy(() -> bench.scheduler.compute(graph)).cause().isSameAs(thrown);
    computesAgain();
  }

  /** A graph of more nodes than failures are kept. */
  private Graph manyNodes() {
    Tensor node = bench.input(new float[] {1}, 1);
    for (int i = 0; i < MANY; i++) {
      node = bench.nodes.sqr(node);
    }
    return bench.nodes.newGraph(2 * MANY).expand(node.asOutput());
  }

  @Test
  @DisplayName("JAVA-4: the first of many failures is the cause, however many nobody asked for")
  void firstOfMany() {
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.unsupported"), "SQR")
            .supports(
                node -> {
                  throw new IllegalStateException("nobody asks");
                })
            .run(task -> {}));
    for (int i = 0; i < 2; i++) {
      bench.scheduler.compute(manyNodes());
    }
    List<Throwable> thrown = new ArrayList<>();
    Registration matcher =
        bench.register(
            FusionRule.builder(
                    Workbench.unique("test.sqr.match"),
                    "SQR",
                    nodes -> {
                      thrown.add(new IOException("match " + thrown.size()));
                      throw (IOException) thrown.getLast();
                    })
                .run(task -> {}));
    // One that is planned before, and never computed.
    bench.scheduler.allocate(manyNodes());
    for (int i = 0; i < 2; i++) {
      // What a rule would have matched is left out then.
      bench.scheduler.compute(failed(thrown));
    }
    matcher.close();
    bench.register(
        Kernel.builder(Workbench.unique("test.sqr.prepare"), "SQR")
            .prepare(
                context -> {
                  thrown.add(new IOException("prepare " + thrown.size()));
                  throw (IOException) thrown.getLast();
                })
            .run(task -> {}));
    for (int i = 0; i < 2; i++) {
      Graph graph = failed(thrown);
      int asked = thrown.size();
      // Asked again, it fails anew.
      assertThatThrownBy(() -> bench.scheduler.compute(graph)).cause().isSameAs(thrown.get(asked));
    }
  }

  /** A graph whose first compute failed, and named the first failure as the cause. */
  private Graph failed(List<Throwable> thrown) {
    thrown.clear();
    Graph graph = manyNodes();
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isSameAs(thrown.getFirst());
    assertThat(thrown).hasSizeGreaterThan(256);
    return graph;
  }

  @Test
  @DisplayName("JAVA-4: a stack that overflows on ggml's thread ends the compute, not the process")
  void overflowInPlace() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.overflow"), "MUL").run(task -> recurse(0)));
    Graph graph = bench.graph(product());
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> bench.scheduler.compute(graph))
          .hasCauseInstanceOf(StackOverflowError.class);
    }
    computesAgain();
  }

  @Test
  @DisplayName("JAVA-4: an array that no heap holds ends the compute, not the process")
  void outOfMemoryInPlace() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.memory"), "MUL")
            .run(
                task -> {
                  long[][] all = new long[1 << 16][];
                  for (int i = 0; i < all.length; i++) {
                    all[i] = new long[Integer.MAX_VALUE - 8];
                  }
                  throw new AssertionError(all.length);
                }));
    assertThatThrownBy(() -> bench.compute(product())).hasCauseInstanceOf(OutOfMemoryError.class);
    computesAgain();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName(
      "KERNEL-3, JAVA-4: what prepare throws is the cause, each time that plan is computed")
  void prepare(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.prepare"), "MUL")
                .prepare(
                    context -> {
                      FailureTest.<RuntimeException>sneak(thrown);
                      return Prepared.NOTHING;
                    })
                .run(task -> {}));
    Graph graph = bench.graph(product());
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> bench.scheduler.compute(graph))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(kernel.name())
          .hasMessageContaining("prepare")
          .cause()
          .isSameAs(thrown);
    }
    computesAgain();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName("JAVA-4: what execute throws is the cause, from the parallel service too")
  void execute(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    AtomicBoolean inParallel = new AtomicBoolean();
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.execute"), "MUL")
            .execute(
                execution -> {
                  if (inParallel.get()) {
                    execution.parallel(
                        (ith, nth) -> {
                          if (ith == nth - 1) {
                            FailureTest.<RuntimeException>sneak(thrown);
                          }
                        });
                  } else {
                    FailureTest.<RuntimeException>sneak(thrown);
                  }
                }));
    Graph graph = bench.graph(product());
    assertThatThrownBy(() -> bench.scheduler.compute(graph)).cause().isSameAs(thrown);
    inParallel.set(true);
    assertThatThrownBy(() -> bench.scheduler.compute(graph)).cause().isSameAs(thrown);
    computesAgain();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName("JAVA-4: what an abort callback throws is the cause")
  void abort(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    bench.backend.setAbort(
        () -> {
          FailureTest.<RuntimeException>sneak(thrown);
          return false;
        });
    Graph graph = bench.graph(product());
    assertThatThrownBy(() -> bench.scheduler.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isSameAs(thrown);
    bench.backend.setAbort(null);
    bench.scheduler.compute(graph);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName(
      "JAVA-4: a supports or preferred that throws is a no, and counted; the native kernel runs")
  void supports(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    Registration supports =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.supports"), "MUL")
                .supports(
                    node -> {
                      FailureTest.<RuntimeException>sneak(thrown);
                      return Support.yes();
                    })
                .run(task -> {}));
    Registration preferred =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.preferred"), "MUL")
                .preferred(
                    node -> {
                      FailureTest.<RuntimeException>sneak(thrown);
                      return Support.yes();
                    })
                .run(task -> {}));
    Tensor x = bench.input(new float[] {3}, 1);
    assertThat(bench.compute(bench.nodes.mul(x, x))).containsExactly(9);
    assertThat(supports.stats().failed()).isPositive();
    assertThat(preferred.stats().failed()).isPositive();
  }

  @Test
  @DisplayName("JAVA-4: of a supports that throws the log has one stack trace, then few lines")
  void supportsInTheLog() {
    String name = Workbench.unique("test.mul.logged");
    PrintStream before = System.err;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Registration kernel =
        bench.register(
            Kernel.builder(name, "MUL")
                .supports(
                    node -> {
                      throw new IllegalStateException("always");
                    })
                .run(task -> {}));
    System.setErr(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      for (int i = 0; i < 20; i++) {
        Tensor x = bench.input(new float[] {3}, 1);
        assertThat(bench.compute(bench.nodes.mul(x, x))).containsExactly(9);
      }
    } finally {
      System.setErr(before);
    }
    String log = bytes.toString(StandardCharsets.UTF_8);
    assertThat(kernel.stats().failed()).isGreaterThanOrEqualTo(20);
    assertThat(log.lines().filter(line -> line.startsWith("\tat "))).isNotEmpty();
    assertThat(log.lines().filter(line -> line.startsWith("java.lang.IllegalStateException")))
        .hasSize(1);
    assertThat(log.lines().filter(line -> line.contains(name))).hasSizeBetween(2, 12);
  }

  @Test
  @DisplayName(
      "KERNEL-2: a supports that says yes once and then no, or throws, ends the compute, not the"
          + " process")
  void takesItsWordBack() {
    for (boolean throwing : List.of(false, true)) {
      AtomicBoolean asked = new AtomicBoolean();
      Operator<NoAttributes> operator =
          Operator.of(
              Workbench.unique("test.fickle") + ".v1",
              (sources, attributes) -> OutputSpec.like(sources.getFirst()));
      bench.register(operator);
      bench.register(
          Kernel.builder(Workbench.unique("test.fickle"), operator)
              .supports(
                  info -> {
                    boolean first = asked.compareAndSet(false, true);
                    if (!first && throwing) {
                      throw new IllegalStateException("asked twice");
                    }
                    return Support.when(first, "asked twice");
                  })
              .run(task -> {}));
      Tensor y =
          operator.create(bench.nodes, new NoAttributes(), bench.input(Workbench.values(8), 8));
      Graph graph = bench.graph(bench.nodes.add(y, y));
      assertThatThrownBy(() -> bench.scheduler.compute(graph))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(operator.name())
          .hasMessageContaining("asked twice");
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("throwables")
  @DisplayName("JAVA-4: a destroy that throws is survived")
  void destroy(Supplier<Throwable> supplier) {
    Throwable thrown = supplier.get();
    AtomicInteger destroyed = new AtomicInteger();
    Registration kernel =
        bench.register(
            Kernel.builder(Workbench.unique("test.mul.destroy"), "MUL")
                .destroy(
                    state -> {
                      destroyed.incrementAndGet();
                      FailureTest.<RuntimeException>sneak(thrown);
                    })
                .run(task -> {}));
    bench.compute(product());
    bench.scheduler.close();
    bench.backend.close();
    assertThat(destroyed).hasPositiveValue();
    kernel.close();
  }

  @Test
  @DisplayName("JAVA-4: when several threads throw, one of their objects is the cause")
  void severalThreads() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.all"), "MUL")
            .run(
                task -> {
                  throw new IllegalStateException("task " + task.ith());
                }));
    assertThatThrownBy(() -> bench.compute(product()))
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("task ");
  }

  @Test
  @DisplayName("JAVA-4: direct compute reports the cause as the scheduler does")
  void directCompute() {
    IllegalStateException thrown = new IllegalStateException("direct");
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.direct"), "MUL")
            .run(
                task -> {
                  throw thrown;
                }));
    Graph graph = bench.graph(product());
    bench.nodes.allocate(bench.cpu);
    assertThatThrownBy(() -> bench.backend.compute(graph))
        .isInstanceOf(GgmlException.class)
        .cause()
        .isSameAs(thrown);
  }

  @Test
  @DisplayName("JAVA-4: a kernel cannot compute its own scheduler's graph; it gets an exception")
  void reentry() {
    bench.register(
        Kernel.builder(Workbench.unique("test.mul.reentry"), "MUL")
            .prepare(context -> Prepared.NOTHING.withMaxTasks(1))
            .run(task -> bench.scheduler.reset()));
    assertThatThrownBy(() -> bench.compute(product()))
        .hasCauseInstanceOf(IllegalStateException.class);
  }
}
