package org.ggmlext.ext;

import java.util.Objects;

/**
 * Reorders graphs before fusion rules are matched, so that nodes which belong together follow each
 * other.
 *
 * @param name unique on a device; setting the environment variable {@code GGML_EXT_DISABLE_<NAME>}
 *     switches it off
 * @param priority higher ones are asked first
 * @param pass what it does
 */
public record GraphOptimizer(String name, int priority, GraphPass pass) {
  public GraphOptimizer {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(pass, "pass");
  }

  /** An optimiser of priority 0. */
  public static GraphOptimizer of(String name, GraphPass pass) {
    return new GraphOptimizer(name, 0, pass);
  }

  Definition definition() {
    return new Definition(name, null, priority, 0, null, null, null, pass, null, null, null);
  }
}
