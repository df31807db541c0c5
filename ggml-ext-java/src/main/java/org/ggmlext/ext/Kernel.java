package org.ggmlext.ext;

import java.util.Objects;
import java.util.function.Function;

/**
 * Computes single nodes of one operation, a built-in one (an override) or a registered operator.
 * Immutable; one kernel may be registered on several devices.
 *
 * <p>An override keeps the operation's numeric and aliasing contract: its output may lie over one
 * of its inputs. Views and explicit in-place nodes do not reach it.
 */
public final class Kernel {
  private final Definition definition;

  private Kernel(Definition definition) {
    this.definition = definition;
  }

  /**
   * Begins a kernel.
   *
   * @param name unique on the device, such as {@code "app.swish.cpu"}; setting the environment
   *     variable {@code GGML_EXT_DISABLE_APP_SWISH_CPU} switches it off
   * @param op ggml's name of a built-in operation, such as {@code "MUL_MAT"}, or an operator's name
   */
  public static Builder builder(String name, String op) {
    return new Builder(name, Objects.requireNonNull(op, "op"));
  }

  /** Begins a kernel of a registered operator. */
  public static Builder builder(String name, Operator<?> operator) {
    return new Builder(name, operator.name());
  }

  /** A kernel that serves every node of an operator, in task form. */
  public static Kernel of(String name, Operator<?> operator, TaskBody body) {
    return builder(name, operator).run(body);
  }

  /** A kernel that serves every node of an operator, by ranges of the output's rows. */
  public static Kernel rows(String name, Operator<?> operator, RowBody body) {
    return builder(name, operator).rows(body);
  }

  /** The name, unique on a device. */
  public String name() {
    return definition.name();
  }

  Definition definition() {
    return definition;
  }

  @Override
  public String toString() {
    return "kernel " + definition.name() + " of " + definition.op();
  }

  /** Describes a kernel; its last call says what runs, and gives the kernel. */
  public static final class Builder extends StepBuilder<Builder, Kernel> {
    private Builder(String name, String op) {
      super(name, op);
      supports = node -> Support.yes();
    }

    @Override
    Builder self() {
      return this;
    }

    @Override
    Kernel build(Definition definition) {
      return new Kernel(definition);
    }

    /** Which nodes it can compute, by metadata alone; all if not called. */
    public Builder supports(Function<NodeInfo, Support> query) {
      supports = Objects.requireNonNull(query, "query");
      return this;
    }

    /**
     * Which nodes it computes better than the device's own kernel; all if not called. Not asked
     * where the device has no kernel of its own.
     */
    public Builder preferred(Function<NodeInfo, Support> query) {
      preferred = Objects.requireNonNull(query, "query");
      return this;
    }
  }
}
