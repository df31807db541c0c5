package org.ggmlext.ext;

import java.util.List;
import java.util.Locale;
import org.ggmlext.Shape;
import org.jspecify.annotations.Nullable;

/**
 * What one backend does with the nodes of a graph: an immutable copy. Its text form is for reading.
 *
 * @param backend the backend's name
 * @param nodes the nodes in the order in which they run
 * @param steps what computes them, in order; together they cover all nodes
 * @param refusals why kernels and rules were not taken
 * @param workspaceBytes scratch memory of the plan
 * @param beforeAllocation planned before memory was allocated, so that nodes could be fused; else
 *     at compute
 * @param computed how often it was computed
 */
public record Plan(
    String backend,
    List<Node> nodes,
    List<Step> steps,
    List<Refusal> refusals,
    long workspaceBytes,
    boolean beforeAllocation,
    long computed) {
  public Plan {
    nodes = List.copyOf(nodes);
    steps = List.copyOf(steps);
    refusals = List.copyOf(refusals);
  }

  /**
   * A node.
   *
   * @param name its tensor's name
   * @param op the operation's name
   * @param typeId ggml's number of its element type
   * @param shape its sizes
   */
  public record Node(String name, String op, int typeId, Shape shape) {}

  /**
   * Nodes that are computed together.
   *
   * @param first number of its first node
   * @param count how many nodes
   * @param kernel the extension that computes them; null: the device's own kernels
   * @param fused whether a fusion rule replaced them
   * @param workspaceBytes scratch memory
   * @param executed how often it was executed, while profiling was on or off
   * @param nanos time of the executions while {@linkplain Extensions#setProfiling profiling} was
   *     on, all together, in nanoseconds
   * @param timed how many of {@code executed} that is the time of
   */
  public record Step(
      int first,
      int count,
      @Nullable String kernel,
      boolean fused,
      long workspaceBytes,
      long executed,
      long nanos,
      long timed) {
    /** Mean time of an execution that was timed, in nanoseconds; 0 where none was. */
    public double nanosEach() {
      return timed == 0 ? 0 : (double) nanos / timed;
    }
  }

  /**
   * A kernel or rule that was not taken.
   *
   * @param node number of the node
   * @param kernel its name
   * @param reason such as {@code "FUSE-2: node 7 has 2 consumers"}
   */
  public record Refusal(int node, String kernel, String reason) {}

  /** The steps that an extension of this name computes. */
  public List<Step> stepsOf(String kernel) {
    return steps.stream().filter(step -> kernel.equals(step.kernel())).toList();
  }

  /**
   * The plan as a picture, an SVG document: a box for each step with its nodes, and the mean time
   * of its executions while {@linkplain Extensions#setProfiling profiling} was on. Reasons of
   * refusals show under the mouse.
   */
  public String toSvg() {
    return PlanSvg.draw(List.of(this));
  }

  /**
   * Several plans in one picture, such as the splits of a graph over several backends.
   *
   * @param plans in the order in which they are shown
   * @see #toSvg()
   */
  public static String toSvg(List<Plan> plans) {
    return PlanSvg.draw(List.copyOf(plans));
  }

  /** One line for the plan, one for each step, one for each refusal. */
  @Override
  public String toString() {
    StringBuilder text =
        new StringBuilder(
            "%s: %d nodes, %d steps, %d bytes of workspace, planned %s, computed %d times%n"
                .formatted(
                    backend,
                    nodes.size(),
                    steps.size(),
                    workspaceBytes,
                    beforeAllocation ? "before allocation" : "at compute",
                    computed));
    for (Step step : steps) {
      text.append("  ").append(range(step.first(), step.count())).append("  ");
      text.append(step.kernel() == null ? "native" : step.kernel());
      text.append(step.fused() ? " (fused)" : "").append(": ").append(operations(step));
      if (step.timed() > 0) {
        text.append(String.format(Locale.ROOT, "  %.1f us", step.nanosEach() / 1e3));
      }
      text.append(System.lineSeparator());
    }
    for (Refusal refusal : refusals) {
      text.append(
          "  node %d not on %s: %s%n"
              .formatted(refusal.node(), refusal.kernel(), refusal.reason()));
    }
    return text.toString();
  }

  private static String range(int first, int count) {
    return count == 1 ? "[%d]".formatted(first) : "[%d-%d]".formatted(first, first + count - 1);
  }

  private String operations(Step step) {
    List<String> ops =
        nodes.subList(step.first(), step.first() + step.count()).stream()
            .map(node -> node.op() + " " + node.shape())
            .toList();
    return String.join(", ", ops);
  }
}
