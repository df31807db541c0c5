package org.ggmlext.kit;

import java.util.Objects;
import org.ggmlext.ext.Registration;

/**
 * Tries a kernel of an own operator against a reference in double precision.
 *
 * <pre>{@code
 * OperatorCheck.of(kernel, (context, in) -> swish.create(context, new Swish(1), in.get(0)), SWISH)
 *     .inputs(shape -> List.of(Input.of(Type.F32, shape)))
 *     .tolerance(1e-6, 1e-6)
 *     .run()
 *     .requirePassed();
 * }</pre>
 *
 * <p>Also for a kernel of a built-in operation that has to hold against a reference rather than
 * against the device's own kernel.
 */
public final class OperatorCheck extends Check<OperatorCheck> {
  private final Reference reference;

  private OperatorCheck(Registration kernel, GraphBuilder builder, Reference reference) {
    super(kernel, builder);
    this.reference = Objects.requireNonNull(reference, "reference");
  }

  /**
   * Begins a check.
   *
   * @param kernel the kernel's registration; its counters say whether it ran
   * @param builder makes a node of the operator, and others if it likes
   * @param reference what the graph should compute
   * @throws IllegalArgumentException if an operator's or an optimiser's registration is given
   */
  public static OperatorCheck of(Registration kernel, GraphBuilder builder, Reference reference) {
    return new OperatorCheck(kernel, builder, reference);
  }

  @Override
  OperatorCheck self() {
    return this;
  }

  @Override
  Reference reference() {
    return reference;
  }
}
