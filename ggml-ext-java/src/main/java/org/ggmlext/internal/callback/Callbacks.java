package org.ggmlext.internal.callback;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;
import org.ggmlext.bindings.ggml_ext_exec_params;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_prepared;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the upcall stubs call. Pointers come as long: no object is made for them. Nothing is ever
 * thrown from here: a {@link Throwable} becomes a status.
 */
final class Callbacks {
  static final Slots<KernelTarget> KERNELS = new Slots<>("kernel");
  static final Slots<OperatorTarget> OPERATORS = new Slots<>("operator");
  static final Slots<Parallel> PARALLEL = new Slots<>("parallel call");
  static final Slots<LongConsumer> COLLECTORS = new Slots<>("collector of registrations");
  static final Slots<StepTarget> STEPS = new Slots<>("planned step");

  /**
   * Kernels whose first failure was logged. Queries are many: the layer says the rest in a line.
   */
  private static final Set<Long> FAILED_QUERIES = ConcurrentHashMap.newKeySet();

  private static final Logger LOG = LoggerFactory.getLogger("org.ggmlext.ext");

  private static final int SUCCESS = ggml_ext_h.GGML_EXT_STATUS_SUCCESS();
  private static final int FAILED = ggml_ext_h.GGML_EXT_STATUS_FAILED();
  private static final int YES = 1;
  private static final int NO = 0;
  private static final int QUERY_FAILED = -FAILED;
  private static final long BACKEND = ggml_ext_exec_params.backend$offset();
  private static final long STATE = ggml_ext_exec_params.state$offset();
  private static final long PREPARED_STATE = ggml_ext_prepared.state$offset();

  private Callbacks() {}

  /** A call of the parallel service, by a kernel that runs for a {@code ggml_backend_t}. */
  record Parallel(ParallelTarget target, long backend) {}

  static int infer(int count, long sources, long attributes, long output, long userData) {
    try {
      OPERATORS.get(userData).infer(count, sources, attributes, output);
      return SUCCESS;
    } catch (Throwable e) {
      return Failures.raise("infer", userData, e);
    }
  }

  static int supports(long node, long userData) {
    try {
      return answer(KERNELS.get(userData).supports(node));
    } catch (Throwable e) {
      return failedQuery(userData, "supports", 0, e);
    }
  }

  static int preferred(long node, long userData) {
    try {
      return answer(KERNELS.get(userData).preferred(node));
    } catch (Throwable e) {
      return failedQuery(userData, "preferred", 0, e);
    }
  }

  private static int answer(@Nullable String refusal) {
    if (refusal == null) {
      return YES;
    }
    Failures.setError(refusal);
    return NO;
  }

  static int match(long graph, int first, long userData) {
    try {
      return KERNELS.get(userData).match(graph, first);
    } catch (Throwable e) {
      return failedQuery(userData, "match", first, e);
    }
  }

  static int optimize(long graph, long userData) {
    try {
      KERNELS.get(userData).optimize(graph);
      return SUCCESS;
    } catch (Throwable e) {
      failedQuery(userData, "optimize", 0, e);
      return FAILED;
    }
  }

  private static int failedQuery(long userData, String what, int node, Throwable failure) {
    try {
      if (FAILED_QUERIES.add(userData)) {
        LOG.error("{}: {} failed", KERNELS.find(userData), what, failure);
      } else {
        LOG.debug("{}: {} failed again", KERNELS.find(userData), what, failure);
      }
    } catch (Throwable e) {
      // As in logLine.
    }
    Failures.raise(what, userData, node, failure);
    return QUERY_FAILED;
  }

  static int prepare(long params, long prepared, long userData) {
    try {
      StepTarget step = KERNELS.get(userData).prepare(params, prepared);
      Raw.putLong(prepared + PREPARED_STATE, STEPS.add(step));
      return SUCCESS;
    } catch (Throwable e) {
      return Failures.raise("prepare", userData, e);
    }
  }

  static int run(long params, int phase, int ith, int nth, long userData) {
    try {
      Computing thread = Computing.begin(Raw.getLong(params + BACKEND));
      try {
        STEPS.get(Raw.getLong(params + STATE)).run(params, phase, ith, nth);
      } finally {
        thread.end();
      }
      return SUCCESS;
    } catch (Throwable e) {
      return Failures.raise("run", userData, e);
    }
  }

  static int execute(long params, long userData) {
    try {
      Computing thread = Computing.begin(Raw.getLong(params + BACKEND));
      try {
        STEPS.get(Raw.getLong(params + STATE)).execute(params);
      } finally {
        thread.end();
      }
      return SUCCESS;
    } catch (Throwable e) {
      return Failures.raise("execute", userData, e);
    }
  }

  static void destroy(long state, long userData) {
    try {
      StepTarget step = STEPS.remove(state);
      if (step != null) {
        step.destroy();
      }
    } catch (Throwable e) {
      logFailure(KERNELS.find(userData), "destroy", e);
    }
  }

  static void releaseKernel(long userData) {
    try {
      KERNELS.remove(userData);
      FAILED_QUERIES.remove(userData);
    } catch (Throwable e) {
      logFailure(null, "release", e);
    }
  }

  static void releaseOperator(long userData) {
    try {
      OPERATORS.remove(userData);
    } catch (Throwable e) {
      logFailure(null, "release", e);
    }
  }

  static int parallelTask(long context, int ith, int nth) {
    Parallel call = PARALLEL.find(context);
    if (call == null) {
      return FAILED;
    }
    try {
      Computing thread = Computing.begin(call.backend());
      try {
        call.target().run(ith, nth);
      } finally {
        thread.end();
      }
      return SUCCESS;
    } catch (Throwable e) {
      call.target().failed(e);
      return FAILED;
    }
  }

  static int addRegistration(long registration, long context) {
    try {
      COLLECTORS.get(context).accept(registration);
      return SUCCESS;
    } catch (Throwable e) {
      return Failures.raise("add registration", context, e);
    }
  }

  static void logLine(int level, long text, long userData) {
    try {
      String line = Raw.getString(text).stripTrailing();
      switch (level) {
        case 1 -> LOG.debug(line);
        case 2 -> LOG.info(line);
        case 3 -> LOG.warn(line);
        default -> LOG.error(line);
      }
    } catch (Throwable e) {
      // A logger that fails must not end the process, and there is nowhere else to say it.
    }
  }

  private static void logFailure(@Nullable KernelTarget kernel, String what, Throwable failure) {
    try {
      LOG.error("{}: {} failed", kernel, what, failure);
    } catch (Throwable e) {
      // As above.
    }
  }
}
