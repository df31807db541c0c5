/**
 * Proof that an operator, a kernel or a fusion rule is right, for its author's own tests.
 *
 * <p>{@link org.ggmlext.kit.OperatorCheck} and {@link org.ggmlext.kit.RuleCheck} try a kernel or a
 * rule in every situation that a graph may put it in, and report what they tried. {@link
 * org.ggmlext.kit.Verification} runs one given graph with a rule off, on and off again.
 */
@NullMarked
package org.ggmlext.kit;

import org.jspecify.annotations.NullMarked;
