package org.ggmlext.ext;

import java.util.Objects;
import java.util.function.Function;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/**
 * Describes a kernel or a fusion rule; the last call says what runs, and gives the finished object.
 *
 * @param <B> the builder
 * @param <T> what it builds
 */
public abstract sealed class StepBuilder<B extends StepBuilder<B, T>, T>
    permits Kernel.Builder, FusionRule.Builder {
  final String name;
  @Nullable String op;
  int priority;
  int flags;
  @Nullable Function<NodeInfo, Support> supports;
  @Nullable Function<NodeInfo, Support> preferred;
  @Nullable Matcher matcher;
  @Nullable Preparation preparation;
  @Nullable Destruction destruction;

  StepBuilder(String name, @Nullable String op) {
    this.name = Objects.requireNonNull(name, "name");
    this.op = op;
  }

  abstract B self();

  abstract T build(Definition definition);

  /** Higher ones are asked first, equal ones in the order of registration; 0 if not called. */
  public B priority(int value) {
    priority = value;
    return self();
  }

  /** What a step needs, for bodies that are lambdas; in place of {@link KernelBody#prepare}. */
  public B prepare(Preparation value) {
    preparation = Objects.requireNonNull(value, "value");
    return self();
  }

  /**
   * Frees what prepare made, for bodies that are lambdas; in place of {@link KernelBody#destroy}.
   */
  public B destroy(Destruction value) {
    destruction = Objects.requireNonNull(value, "value");
    return self();
  }

  /**
   * For CUDA: execution only enqueues work that a CUDA graph may record and replay, on the stream
   * that the layer gives; lazy set-up is done by the end of the first execution.
   */
  public B captureSafe() {
    flags |= ggml_ext_h.GGML_EXT_KERNEL_CAPTURE_SAFE();
    return self();
  }

  /**
   * For CUDA, capture-safe as well: what is recorded depends on metadata, addresses, the device and
   * the registration alone, so that an equal plan may replay it.
   */
  public B replayReusable() {
    flags |= ggml_ext_h.GGML_EXT_KERNEL_REPLAY_REUSABLE();
    return captureSafe();
  }

  /**
   * For fusion rules: the result is right whatever storage the output shares with the inputs, by
   * way of scratch memory for example. Without it, a group whose output overlaps what an earlier
   * node of the group reads runs as single operations.
   */
  public B overlapSafe() {
    flags |= ggml_ext_h.GGML_EXT_KERNEL_OVERLAP_SAFE();
    return self();
  }

  /** Runs this on all of the backend's threads. */
  public T run(TaskBody body) {
    return body(body);
  }

  /** Computes rows of the output; each of the backend's threads gets an equal share. */
  public T rows(RowBody body) {
    return body(TaskBody.rows(body));
  }

  /**
   * Calls this once, on one thread. On a CUDA device it enqueues work, see {@link Execution#cuda};
   * flag it {@link #captureSafe} or {@link #replayReusable} where that holds, since a plan with one
   * kernel that is not flagged is never recorded as a CUDA graph.
   */
  public T execute(WholeBody body) {
    return body(body);
  }

  /**
   * For CUDA devices: launches kernels of {@link CudaModule}s, as the description says. It is
   * called when a graph is planned; afterwards no Java code of its author runs, and none at all
   * while a recorded plan is replayed. Such a kernel is {@link #replayReusable}. It needs no {@link
   * #prepare} and no {@link #destroy}.
   *
   * @throws IllegalStateException if {@link #prepare} or {@link #destroy} was called
   */
  public T launch(CudaDescription description) {
    if (preparation != null || destruction != null) {
      throw new IllegalStateException(
          name + ": launch() has neither prepare() nor destroy(): the description is all of it");
    }
    replayReusable();
    return body(new CudaBody(description));
  }

  /** Runs this, in either form. */
  public T body(KernelBody body) {
    Objects.requireNonNull(body, "body");
    return build(
        new Definition(
            name,
            op,
            priority,
            flags,
            supports,
            preferred,
            matcher,
            null,
            preparation,
            destruction,
            body));
  }
}
