package org.ggmlext.ext;

import java.util.Objects;

/**
 * Replaces several consecutive nodes by one step. Immutable; one rule may be registered on several
 * devices.
 *
 * <p>Fusing is an optimisation: the layer decides whether a match is legal (an intermediate that
 * somebody else reads is not), and may always run the nodes singly instead.
 */
public final class FusionRule {
  private final Definition definition;

  private FusionRule(Definition definition) {
    this.definition = definition;
  }

  /**
   * Begins a rule.
   *
   * @param name unique on the device; setting the environment variable {@code
   *     GGML_EXT_DISABLE_<NAME>} switches it off
   * @param pattern the nodes that it replaces
   */
  public static Builder builder(String name, Pattern pattern) {
    return new Builder(name, pattern.firstOp(), pattern);
  }

  /**
   * Begins a rule whose matches are found by code.
   *
   * @param name unique on the device
   * @param firstOp the operation of the first node of all its matches, a built-in one's name or an
   *     operator's
   * @param matcher finds the nodes that it replaces
   */
  public static Builder builder(String name, String firstOp, Matcher matcher) {
    return new Builder(name, Objects.requireNonNull(firstOp, "firstOp"), matcher);
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
    return "fusion rule " + definition.name();
  }

  /** Describes a rule; its last call says what runs, and gives the rule. */
  public static final class Builder extends StepBuilder<Builder, FusionRule> {
    private Builder(String name, String firstOp, Matcher matcher) {
      super(name, firstOp);
      this.matcher = Objects.requireNonNull(matcher, "matcher");
    }

    @Override
    Builder self() {
      return this;
    }

    @Override
    FusionRule build(Definition definition) {
      return new FusionRule(definition);
    }
  }
}
