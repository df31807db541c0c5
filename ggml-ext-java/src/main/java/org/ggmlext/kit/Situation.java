package org.ggmlext.kit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What a kernel or rule is tried in.
 *
 * @param name for the report
 * @param layouts of the inputs
 * @param extra what is done to an intermediate
 * @param intermediate its number; meaningless without {@code extra}
 * @param action how the graph is computed
 */
record Situation(String name, List<Layout> layouts, Extra extra, int intermediate, Action action) {
  /** What is done to an intermediate. */
  enum Extra {
    NONE,
    SECOND_CONSUMER,
    OUTPUT_FLAG
  }

  /** How the graph is computed. */
  enum Action {
    ONCE("plain"),
    ONE_THREAD("one thread"),
    REPEATED("repeated runs"),
    POISONED("inputs poisoned between runs"),
    WATCHED("evaluation callback"),
    DIRECT("without a scheduler"),
    CANCELLED("after a cancelled run"),
    TWO_SCHEDULERS("two schedulers at once");

    private final String text;

    Action(String text) {
      this.text = text;
    }

    /** Whether it is about what only CPU backends have. */
    boolean isForCpu() {
      return this == ONE_THREAD || this == CANCELLED;
    }
  }

  static Situation plain(int inputs) {
    return action(inputs, Action.ONCE);
  }

  /** All of them, the plain one first. */
  static List<Situation> all(int inputs, int intermediates) {
    List<Situation> all = new ArrayList<>();
    all.add(plain(inputs));
    for (int i = 0; i < inputs; i++) {
      for (Layout layout : Layout.values()) {
        if (layout != Layout.CONTIGUOUS) {
          all.add(layout(inputs, i, layout));
        }
      }
    }
    for (int i = 0; i < intermediates; i++) {
      all.add(extra(inputs, i, Extra.SECOND_CONSUMER, "with a second consumer"));
      all.add(extra(inputs, i, Extra.OUTPUT_FLAG, "marked as output"));
    }
    for (Action action : Action.values()) {
      if (action != Action.ONCE) {
        all.add(action(inputs, action));
      }
    }
    return all;
  }

  private static Situation layout(int inputs, int input, Layout layout) {
    List<Layout> layouts = new ArrayList<>(contiguous(inputs));
    layouts.set(input, layout);
    return new Situation(
        "input %d %s".formatted(input, layout.text()), layouts, Extra.NONE, 0, Action.ONCE);
  }

  private static Situation extra(int inputs, int intermediate, Extra extra, String text) {
    return new Situation(
        "intermediate %d %s".formatted(intermediate, text),
        contiguous(inputs),
        extra,
        intermediate,
        Action.ONCE);
  }

  private static Situation action(int inputs, Action action) {
    return new Situation(action.text, contiguous(inputs), Extra.NONE, 0, action);
  }

  private static List<Layout> contiguous(int inputs) {
    return Collections.nCopies(inputs, Layout.CONTIGUOUS);
  }

  /** The first input that the layout does not suit, -1 if it suits all. */
  int unsuited(List<Input> inputs) {
    for (int i = 0; i < inputs.size(); i++) {
      if (!layouts.get(i).appliesTo(inputs.get(i).shape())) {
        return i;
      }
    }
    return -1;
  }
}
