package org.ggmlext.kit;

import org.ggmlext.ext.Registration;
import org.jspecify.annotations.Nullable;

/**
 * Tries a fusion rule, or a kernel of a built-in operation, against what the device computes
 * without it, over contiguous inputs of the same values.
 *
 * <pre>{@code
 * RuleCheck.of(rule, (context, in) -> context.add(context.scale(in.get(0), 3), in.get(1)))
 *     .inputs(shape -> List.of(Input.of(Type.F32, shape), Input.of(Type.F32, shape)))
 *     .run()
 *     .requirePassed();
 * }</pre>
 *
 * <p>Layouts that the builder refuses, such as a strided input of {@code scale}, are reported as
 * refused. A builder that calls ggml's C functions itself has to refuse what ggml does not allow:
 * ggml ends the process over it.
 */
public final class RuleCheck extends Check<RuleCheck> {
  private RuleCheck(Registration rule, GraphBuilder builder) {
    super(rule, builder);
  }

  /**
   * Begins a check.
   *
   * @param rule the registration of the rule or kernel; its counters say whether it ran
   * @param builder makes the nodes that it replaces, of built-in operations or such that other
   *     kernels compute
   * @throws IllegalArgumentException if an operator's or an optimiser's registration is given
   */
  public static RuleCheck of(Registration rule, GraphBuilder builder) {
    return new RuleCheck(rule, builder);
  }

  @Override
  RuleCheck self() {
    return this;
  }

  @Override
  @Nullable Reference reference() {
    return null;
  }
}
