package org.ggmlext.kit;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.function.Function;
import java.util.random.RandomGenerator;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Scheduler;
import org.ggmlext.Shape;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Registration;
import org.jspecify.annotations.Nullable;

/**
 * Tries a registered kernel or rule in many situations: a sweep of shapes and types, inputs that
 * are strided, transposed, permuted, views with an offset, or overwritten by the output,
 * intermediates that have a second consumer or are outputs, one thread, repeated runs, inputs
 * poisoned between runs, an evaluation callback, a compute without scheduler, a run after a
 * cancelled one, two schedulers at once.
 *
 * <p>It uses backends of its own and closes them. While it runs, nobody else may switch the
 * registration on or off. Not safe for use by several threads.
 *
 * @param <C> the check
 */
public abstract sealed class Check<C extends Check<C>> permits OperatorCheck, RuleCheck {
  private static final List<Shape> SHAPES =
      List.of(
          Shape.of(64, 8),
          Shape.of(1),
          Shape.of(7),
          Shape.of(33, 5),
          Shape.of(1, 9),
          Shape.of(16, 1, 3),
          Shape.of(31, 3, 2, 2),
          Shape.of(32, 4, 1, 16),
          Shape.of(1024, 65));

  final Registration registration;
  final GraphBuilder builder;
  private final List<Function<Shape, List<Input>>> variants = new ArrayList<>();
  private List<Shape> shapes = SHAPES;
  private Tolerance tolerance = new Tolerance(1e-6, 1e-5);
  private Device device = Ggml.get().device(DeviceType.CPU);
  private int threads = 2;
  private long seed = 42;
  private boolean sameBits = true;

  Check(Registration registration, GraphBuilder builder) {
    this.registration = requireComputing(registration);
    this.builder = Objects.requireNonNull(builder, "builder");
  }

  /**
   * Returns what computes something.
   *
   * @throws IllegalArgumentException if it is an operator's or an optimiser's registration
   */
  static Registration requireComputing(Registration registration) {
    Objects.requireNonNull(registration, "registration");
    if (registration.isOptimizer()) {
      throw new IllegalArgumentException(
          registration.name()
              + " is a graph optimiser, which computes nothing: give the registration of a kernel"
              + " or rule");
    }
    if (registration.isOpen() && registration.isOperator()) {
      throw new IllegalArgumentException(
          registration.name() + " is an operator: give its kernel's registration");
    }
    return registration;
  }

  abstract C self();

  /** What the graph should give; null: what it gives while the registration is off. */
  abstract @Nullable Reference reference();

  /**
   * The inputs of the graph for each shape of the sweep. Each call adds a variant, such as one with
   * other types; all have the same number of inputs, and at least one is given.
   */
  public C inputs(Function<Shape, List<Input>> ofShape) {
    variants.add(Objects.requireNonNull(ofShape, "ofShape"));
    return self();
  }

  /**
   * The shapes of the sweep, instead of the usual ones: sizes of 1, odd ones, batches of 1 and
   * more, and a large one.
   */
  public C shapes(Shape... values) {
    if (values.length == 0) {
      throw new IllegalArgumentException("a sweep has at least one shape");
    }
    shapes = List.of(values);
    return self();
  }

  /** How far results may be off; 1e-6 absolute and 1e-5 relative if not called. */
  public C tolerance(double absolute, double relative) {
    tolerance = new Tolerance(absolute, relative);
    return self();
  }

  /** The device that the registration is on; the CPU if not called. */
  public C device(Device value) {
    device = Objects.requireNonNull(value, "value");
    return self();
  }

  /** Threads of the CPU backend; 2 if not called. */
  public C threads(int count) {
    if (count < 1) {
      throw new IllegalArgumentException("a backend needs at least 1 thread, not " + count);
    }
    threads = count;
    return self();
  }

  /** Seed of the generated values; 42 if not called. */
  public C seed(long value) {
    seed = value;
    return self();
  }

  /**
   * Repeated runs are held against the tolerance alone; if not called, they give the same bits. For
   * kernels whose compiled form rounds otherwise than the interpreted one, such as those that use
   * the Vector API's exponential function.
   */
  public C bitsMayDiffer() {
    sameBits = false;
    return self();
  }

  boolean sameBits() {
    return sameBits;
  }

  Tolerance tolerance() {
    return tolerance;
  }

  Device device() {
    return device;
  }

  int threads() {
    return threads;
  }

  /**
   * Tries everything. The registration is enabled at the end if it was before.
   *
   * @return all cases; see {@link Report#requirePassed}
   * @throws IllegalStateException if no inputs were given, the registration is closed or switched
   *     off, or the extension layer is not attached
   */
  public Report run() {
    if (variants.isEmpty()) {
      throw new IllegalStateException("call inputs(shape -> List.of(Input.of(Type.F32, shape)))");
    }
    if (!registration.isEnabled()) {
      throw new IllegalStateException(registration + " is switched off");
    }
    Extensions.attach(Ggml.get());
    List<Report.Row> rows = new ArrayList<>();
    RandomGenerator random = new Random(seed);
    try (Session session = new Session(Session.devices(device))) {
      session.threads(threads);
      for (Function<Shape, List<Input>> variant : variants) {
        for (Shape shape : shapes) {
          sweep(session, List.copyOf(variant.apply(shape)), random, rows);
        }
      }
    }
    return new Report(registration.name(), seed, rows);
  }

  private void sweep(
      Session session, List<Input> inputs, RandomGenerator random, List<Report.Row> rows) {
    Situation plain = Situation.plain(inputs.size());
    List<Values> first = inputs.stream().map(input -> input.values(random)).toList();
    List<Values> second = inputs.stream().map(input -> input.values(random)).toList();
    int intermediates;
    double[] firstWanted = new double[0];
    double[] secondWanted = new double[0];
    try (BuiltGraph graph = new BuiltGraph(device, inputs, plain, builder)) {
      intermediates = graph.intermediates().size();
      if (reference() == null) {
        firstWanted = off(session, graph, first).output();
        secondWanted = off(session, graph, second).output();
      }
    } catch (IllegalArgumentException | GgmlException e) {
      // Without an expectation there is nothing to compare.
      rows.add(
          new Report.Row(
              plain.name(), CaseRunner.text(inputs), Verdict.NOT_APPLICABLE, CaseRunner.text(e)));
      return;
    }
    Reference reference = reference();
    if (reference != null) {
      firstWanted = reference.compute(first);
      secondWanted = reference.compute(second);
    }
    CaseRunner runner =
        new CaseRunner(
            this,
            session,
            inputs,
            new CaseRunner.Expected(first, firstWanted),
            new CaseRunner.Expected(second, secondWanted));
    for (Situation situation : Situation.all(inputs.size(), intermediates)) {
      rows.add(runner.run(situation));
    }
  }

  /** What a graph gives without the kernel or rule. */
  record Off(double[] output, double[] extra) {}

  Off off(Session session, BuiltGraph graph, List<Values> values) {
    registration.setEnabled(false);
    try (Scheduler scheduler = session.newScheduler()) {
      double[] output = CaseRunner.compute(scheduler, graph, values);
      return new Off(
          output, graph.extra() == null ? new double[0] : Elements.values(graph.extra()));
    } finally {
      registration.setEnabled(true);
    }
  }
}
