package org.ggmlext.ext;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * A chain of nodes that follow each other, each reading the output of the one before it. Immutable:
 * every method returns a longer pattern.
 *
 * <pre>{@code
 * Pattern.start("RMS_NORM").capture("x", 0)
 *     .then("MUL").captureOther("weight")
 *     .where(node -> node.dst().is(Type.F32), "the product is F32")
 * }</pre>
 */
public final class Pattern implements Matcher {
  private record Condition(Predicate<NodeInfo> holds, String reason) {
    Condition {
      Objects.requireNonNull(holds, "condition");
      Objects.requireNonNull(reason, "reason");
    }
  }

  /** What a name stands for. */
  private sealed interface Named {
    record Source(int index) implements Named {}

    /** The source beside the chain. */
    record Other() implements Named {}

    record Output() implements Named {}
  }

  private record Name(String name, Named named) {
    Name {
      Objects.requireNonNull(name, "name");
    }

    boolean isNamedAs(Name other) {
      return name.equals(other.name);
    }
  }

  private record Part(String op, List<Name> names, List<Condition> conditions) {}

  private final List<Part> parts;

  private Pattern(List<Part> parts) {
    this.parts = List.copyOf(parts);
  }

  /**
   * A pattern of one node.
   *
   * @param op ggml's name of an operation, or an operator's name; for activations {@code UNARY} or
   *     {@code GLU}, and a condition on {@link NodeInfo#function}
   */
  public static Pattern start(String op) {
    return new Pattern(List.of(part(op)));
  }

  private static Part part(String op) {
    return new Part(Objects.requireNonNull(op, "op"), List.of(), List.of());
  }

  /**
   * The next node; one of its sources is the output of the one before it.
   *
   * @param op as in {@link #start}
   */
  public Pattern then(String op) {
    List<Part> longer = new ArrayList<>(parts);
    longer.add(part(op));
    return new Pattern(longer);
  }

  /**
   * Names a source of the last node.
   *
   * @throws IllegalArgumentException if the source is negative, or the name is taken, as for the
   *     other captures
   */
  public Pattern capture(String name, int src) {
    if (src < 0) {
      throw new IllegalArgumentException("source " + src + ", expected >= 0");
    }
    return withName(new Name(name, new Named.Source(src)));
  }

  /**
   * Names that one of the last node's two sources which is not the output of the node before it. A
   * node with more or fewer sources is no match, nor is one that has this output as both: there is
   * no other then, and a step never computes what lies between its nodes.
   */
  public Pattern captureOther(String name) {
    if (parts.size() < 2) {
      throw new IllegalArgumentException("the first node of a pattern has no node before it");
    }
    return withName(new Name(name, new Named.Other()));
  }

  /** Names the output of the last node. */
  public Pattern captureOutput(String name) {
    return withName(new Name(name, new Named.Output()));
  }

  private Pattern withName(Name name) {
    if (parts.stream().flatMap(part -> part.names().stream()).anyMatch(name::isNamedAs)) {
      throw new IllegalArgumentException("\"" + name.name() + "\" is captured already");
    }
    Part last = parts.getLast();
    List<Name> names = new ArrayList<>(last.names());
    names.add(name);
    return withLast(new Part(last.op(), List.copyOf(names), last.conditions()));
  }

  /**
   * Wants more of the last node.
   *
   * @param condition by metadata alone
   * @param reason what it wants, for the plan's list of refusals
   */
  public Pattern where(Predicate<NodeInfo> condition, String reason) {
    Part last = parts.getLast();
    List<Condition> conditions = new ArrayList<>(last.conditions());
    conditions.add(new Condition(condition, reason));
    return withLast(new Part(last.op(), last.names(), List.copyOf(conditions)));
  }

  private Pattern withLast(Part part) {
    List<Part> changed = new ArrayList<>(parts);
    changed.set(changed.size() - 1, part);
    return new Pattern(changed);
  }

  String firstOp() {
    return parts.getFirst().op();
  }

  @Override
  public Match match(List<NodeInfo> nodes) {
    if (nodes.size() < parts.size()) {
      return Match.none();
    }
    Map<String, Capture> captures = new HashMap<>();
    for (int i = 0; i < parts.size(); i++) {
      NodeInfo node = nodes.get(i);
      Part part = parts.get(i);
      if (!node.op().equals(part.op())) {
        return part.op().equals(node.function())
            ? Match.none(
                "\"%s\" is a function of %s: expect that, and the function in where()"
                    .formatted(part.op(), node.op()))
            : Match.none();
      }
      int chained = i == 0 ? 0 : sourceOf(node, nodes.get(i - 1).dst());
      if (chained < 0) {
        return Match.none("node " + i + " does not read node " + (i - 1) + " of the pattern");
      }
      for (Condition condition : part.conditions()) {
        if (!condition.holds().test(node)) {
          return Match.none(node + ": expected " + condition.reason());
        }
      }
      for (Name name : part.names()) {
        switch (find(name.named(), i, node, chained)) {
          case Found.Tensor(Capture capture) -> captures.put(name.name(), capture);
          case Found.Nothing(String reason) -> {
            return Match.none("%s has nothing for \"%s\": %s".formatted(node, name.name(), reason));
          }
        }
      }
    }
    return new Match.Nodes(parts.size(), captures);
  }

  private static int sourceOf(NodeInfo node, TensorInfo tensor) {
    for (int i = 0; i < node.sourceCount(); i++) {
      if (node.hasSrc(i) && node.src(i).isSameTensor(tensor)) {
        return i;
      }
    }
    return -1;
  }

  private sealed interface Found {
    record Tensor(Capture capture) implements Found {}

    record Nothing(String reason) implements Found {}
  }

  private static Found find(Named named, int position, NodeInfo node, int chained) {
    return switch (named) {
      case Named.Output _ -> new Found.Tensor(Capture.output(position));
      case Named.Source(int index) when node.hasSrc(index) ->
          new Found.Tensor(new Capture(position, index));
      case Named.Source(int index) -> new Found.Nothing("no source " + index);
      case Named.Other _ -> findOther(position, node, chained);
    };
  }

  private static Found findOther(int position, NodeInfo node, int chained) {
    int[] sources = IntStream.range(0, node.sourceCount()).filter(node::hasSrc).toArray();
    if (sources.length != 2) {
      return new Found.Nothing("expected 2 sources, the chain and another, not " + sources.length);
    }
    int other = sources[0] == chained ? sources[1] : sources[0];
    if (node.src(other).isSameTensor(node.src(chained))) {
      return new Found.Nothing("both of its sources are the output of the node before it");
    }
    return new Found.Tensor(new Capture(position, other));
  }

  /** Such as {@code RMS_NORM -> MUL}. */
  @Override
  public String toString() {
    return String.join(" -> ", parts.stream().map(Part::op).toList());
  }
}
