package org.ggmlext.ext;

import java.util.Objects;

/** A kernel's answer to "may you compute this node?", with the reason where it may not. */
public sealed interface Support {
  /** It may. */
  record Yes() implements Support {
    static final Yes INSTANCE = new Yes();
  }

  /**
   * It may not.
   *
   * @param reason why, as a reader of the plan should see it: what was given, what is expected
   */
  record No(String reason) implements Support {
    public No {
      Objects.requireNonNull(reason, "reason");
    }
  }

  /** The kernel may compute the node. */
  static Support yes() {
    return Yes.INSTANCE;
  }

  /**
   * The kernel may not compute the node.
   *
   * @param reason what was given and what is expected
   */
  static Support no(String reason) {
    return new No(reason);
  }

  /**
   * Yes where the condition holds.
   *
   * @param condition what the kernel needs
   * @param reason the reason given where it does not hold
   */
  static Support when(boolean condition, String reason) {
    return condition ? yes() : no(reason);
  }

  /**
   * This answer where it is a no, else the other one; so that conditions read as a list.
   *
   * @param condition what the kernel needs besides
   * @param reason the reason given where it does not hold
   */
  default Support and(boolean condition, String reason) {
    return this instanceof No ? this : when(condition, reason);
  }
}
