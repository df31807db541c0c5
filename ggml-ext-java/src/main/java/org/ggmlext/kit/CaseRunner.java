package org.ggmlext.kit;

import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.ggmlext.DeviceType;
import org.ggmlext.EvalCallback;
import org.ggmlext.GgmlException;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.internal.callback.Failures;

/** Runs the situations of one set of inputs. */
final class CaseRunner {
  /** Computes of each of two schedulers at once. */
  private static final int RACES = 8;

  /** The abort callback says yes at its first, second and third call. */
  private static final int CANCELS = 3;

  private static final EvalCallback WATCH =
      new EvalCallback() {
        @Override
        public boolean wants(Tensor node) {
          return true;
        }

        @Override
        public boolean computed(Tensor node) {
          return true;
        }
      };

  /** Values of the inputs, and what the output should be. */
  record Expected(List<Values> inputs, double[] output) {}

  private final Check<?> check;
  private final Session session;
  private final List<Input> inputs;
  private final Expected first;
  private final Expected second;

  CaseRunner(Check<?> check, Session session, List<Input> inputs, Expected first, Expected second) {
    this.check = check;
    this.session = session;
    this.inputs = inputs;
    this.first = first;
    this.second = second;
  }

  static String text(List<Input> inputs) {
    return inputs.stream().map(Input::toString).collect(Collectors.joining(", "));
  }

  /** A message with its cause, which may be what a callback threw. */
  static String text(Throwable thrown) {
    String text = Objects.requireNonNullElse(thrown.getMessage(), thrown.toString());
    Throwable cause = thrown.getCause();
    return cause == null ? text : text + " (" + Failures.describe(cause) + ")";
  }

  private Report.Row row(Situation situation, Verdict verdict, String detail) {
    return new Report.Row(situation.name(), text(inputs), verdict, detail);
  }

  Report.Row run(Situation situation) {
    int unsuited = situation.unsuited(inputs);
    if (unsuited >= 0) {
      return row(
          situation,
          Verdict.NOT_APPLICABLE,
          "%s has no such layout".formatted(inputs.get(unsuited)));
    }
    if (situation.action().isForCpu() && check.device().type() != DeviceType.CPU) {
      return row(
          situation,
          Verdict.NOT_APPLICABLE,
          "threads and cancellation are about CPUs, not " + check.device().name());
    }
    BuiltGraph graph;
    try {
      graph = build(situation);
    } catch (IllegalArgumentException e) {
      return row(situation, Verdict.REFUSED, "not built: " + text(e));
    }
    try (graph) {
      String unsupported = session.unsupported(graph.graph());
      if (!unsupported.isEmpty()) {
        return row(situation, Verdict.REFUSED, unsupported);
      }
      return judged(situation, graph);
    }
  }

  private BuiltGraph build(Situation situation) {
    return new BuiltGraph(check.device(), inputs, situation, check.builder);
  }

  private Report.Row judged(Situation situation, BuiltGraph graph) {
    Judge judge = new Judge(check.tolerance(), check.sameBits());
    long before = check.registration.stats().executed();
    String note = "";
    try {
      note = act(situation, graph, judge);
    } catch (RuntimeException e) {
      judge.fail("threw " + text(e));
    }
    String failure = judge.failure();
    if (failure != null) {
      return row(situation, Verdict.FAILED, failure);
    }
    if (check.registration.stats().executed() == before) {
      Set<String> reasons = session.reasons(check.registration.name());
      String reason =
          reasons.isEmpty() ? "did not run, no reason given" : String.join("; ", reasons);
      return row(situation, Verdict.REFUSED, reason + note);
    }
    return row(situation, Verdict.PASSED, judge.largest() + note);
  }

  /** Returns a remark, "" if there is none. */
  private String act(Situation situation, BuiltGraph graph, Judge judge) {
    return switch (situation.action()) {
      case ONCE -> once(situation, graph, judge);
      case ONE_THREAD -> oneThread(graph, judge);
      case REPEATED -> repeated(graph, judge);
      case POISONED -> poisoned(graph, judge);
      case WATCHED -> watched(graph, judge);
      case DIRECT -> direct(graph, judge);
      case CANCELLED -> cancelled(graph, judge);
      case TWO_SCHEDULERS -> twoSchedulers(situation, judge);
    };
  }

  /** Computes a graph in fresh or refilled memory and reads its output. */
  static double[] compute(Scheduler scheduler, BuiltGraph graph, List<Values> values) {
    if (!graph.output().isAllocated()) {
      scheduler.allocate(graph.graph());
    }
    graph.poisonNodes();
    graph.fill(values);
    scheduler.compute(graph.graph());
    return Elements.values(graph.output());
  }

  private byte[] compare(
      String what, Scheduler scheduler, BuiltGraph graph, Expected expected, Judge judge) {
    double[] got = compute(scheduler, graph, expected.inputs());
    judge.compare(what, graph.output(), got, expected.output());
    return Elements.packed(graph.output());
  }

  private String once(Situation situation, BuiltGraph graph, Judge judge) {
    Tensor extra = graph.extra();
    double[] wantExtra = null;
    if (extra != null && check.reference() == null) {
      wantExtra = check.off(session, graph, first.inputs()).extra();
    }
    try (Scheduler scheduler = session.newScheduler()) {
      compare("the output", scheduler, graph, first, judge);
      if (extra != null && wantExtra != null) {
        judge.compare("the intermediate", extra, Elements.values(extra), wantExtra);
      }
      int overwritten = situation.layouts().indexOf(Layout.COMPUTED);
      if (overwritten >= 0 && !graph.outputLiesOver(overwritten)) {
        return "; ggml gave the output other memory";
      }
      return "";
    }
  }

  private String oneThread(BuiltGraph graph, Judge judge) {
    session.threads(1);
    try (Scheduler scheduler = session.newScheduler()) {
      compare("the output", scheduler, graph, first, judge);
      return "";
    } finally {
      session.threads(check.threads());
    }
  }

  private String repeated(BuiltGraph graph, Judge judge) {
    byte[] bits;
    try (Scheduler scheduler = session.newScheduler()) {
      bits = compare("the first run", scheduler, graph, first, judge);
      compare("a run with other values", scheduler, graph, second, judge);
      byte[] again = compare("the third run", scheduler, graph, first, judge);
      judge.sameBits("the third run, with the values of the first", graph.output(), bits, again);
    }
    try (Scheduler scheduler = session.newScheduler()) {
      byte[] again = compare("the run after a new allocation", scheduler, graph, first, judge);
      judge.sameBits("the run after a new allocation", graph.output(), bits, again);
    }
    return "";
  }

  private String poisoned(BuiltGraph graph, Judge judge) {
    try (Scheduler scheduler = session.newScheduler()) {
      byte[] bits = compare("the first run", scheduler, graph, first, judge);
      graph.poisonInputs();
      scheduler.compute(graph.graph());
      byte[] again = compare("the run after NaN inputs", scheduler, graph, first, judge);
      judge.sameBits("the run after NaN inputs", graph.output(), bits, again);
    }
    return "";
  }

  private String watched(BuiltGraph graph, Judge judge) {
    try (Scheduler scheduler = session.newScheduler()) {
      scheduler.setEvalCallback(WATCH);
      compare("the output", scheduler, graph, first, judge);
    }
    return "";
  }

  private String direct(BuiltGraph graph, Judge judge) {
    for (Tensor node : graph.graph().nodes()) {
      if (!check.device().supportsOp(node)) {
        return "; %s does not compute %s alone".formatted(check.device().name(), node.op());
      }
    }
    graph.allocate(check.device());
    graph.poisonNodes();
    graph.fill(first.inputs());
    session.backend().compute(graph.graph());
    judge.compare("the output", graph.output(), Elements.values(graph.output()), first.output());
    return "";
  }

  private String cancelled(BuiltGraph graph, Judge judge) {
    int cancelled = 0;
    try (Scheduler scheduler = session.newScheduler()) {
      for (int after = 0; after < CANCELS; after++) {
        int polls = after;
        AtomicInteger asked = new AtomicInteger();
        session.backend().setAbort(() -> asked.getAndIncrement() >= polls);
        try {
          compute(scheduler, graph, second.inputs());
        } catch (GgmlException e) {
          cancelled++;
        } finally {
          session.backend().setAbort(null);
        }
        compare("the run after a cancelled one", scheduler, graph, first, judge);
      }
    }
    return "; %d of %d runs cancelled".formatted(cancelled, CANCELS);
  }

  private String twoSchedulers(Situation situation, Judge judge) {
    CountDownLatch ready = new CountDownLatch(2);
    Thread other = new Thread(() -> race(situation, second, ready, judge), "ggml-ext-kit");
    other.start();
    race(situation, first, ready, judge);
    boolean interrupted = false;
    while (other.isAlive()) {
      try {
        other.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return "";
  }

  private void race(Situation situation, Expected expected, CountDownLatch ready, Judge judge) {
    boolean counted = false;
    try (Session own = new Session(Session.devices(check.device()));
        BuiltGraph graph = build(situation);
        Scheduler scheduler = own.newScheduler()) {
      own.threads(check.threads());
      scheduler.allocate(graph.graph());
      ready.countDown();
      counted = true;
      ready.await();
      for (int i = 0; i < RACES; i++) {
        compare("a run beside another scheduler's", scheduler, graph, expected, judge);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      judge.fail("interrupted");
    } catch (RuntimeException e) {
      judge.fail("threw " + text(e));
    } finally {
      if (!counted) {
        ready.countDown();
      }
    }
  }
}
