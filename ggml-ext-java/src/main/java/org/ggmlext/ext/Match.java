package org.ggmlext.ext;

import java.util.Map;
import java.util.Objects;

/** A rule's answer to "how many nodes from here do you replace?". */
public sealed interface Match {
  /**
   * No nodes.
   *
   * @param reason why, for the plan's list of refusals; "" where there is nothing to say
   */
  record None(String reason) implements Match {
    public None {
      Objects.requireNonNull(reason, "reason");
    }
  }

  /**
   * So many consecutive nodes. Whether replacing them is legal is decided by the layer, not by the
   * rule.
   *
   * @param count number of nodes, at least 1
   * @param captures tensors found by name
   */
  record Nodes(int count, Map<String, Capture> captures) implements Match {
    public Nodes {
      if (count < 1) {
        throw new IllegalArgumentException("a match has at least 1 node, not " + count);
      }
      captures = Map.copyOf(captures);
    }
  }

  /** No nodes, and nothing to say about it: another operation altogether. */
  static Match none() {
    return new None("");
  }

  /** No nodes, though it looked like a match at first. */
  static Match none(String reason) {
    return new None(reason);
  }

  /** So many consecutive nodes. */
  static Match nodes(int count) {
    return new Nodes(count, Map.of());
  }
}
