package org.ggmlext.kit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Plan;
import org.ggmlext.ext.Registration;

/**
 * What a kernel or rule changes in a graph: the graph is computed without it, with it, and without
 * it again (A, B, A), each time with new memory.
 *
 * @param rule name of the kernel or rule
 * @param outputs one for each output of the graph
 * @param steps steps of B that the kernel or rule computed
 * @param fusedNodes nodes that those of them replace that are fused
 * @param refusals why it did not take other nodes
 */
public record Verification(
    String rule, List<Output> outputs, int steps, int fusedNodes, List<String> refusals) {
  public Verification {
    outputs = List.copyOf(outputs);
    refusals = List.copyOf(refusals);
  }

  /**
   * An output of the graph.
   *
   * @param name the tensor's name, or its operation where it has none, and its type and shape
   * @param difference of B from the first A
   * @param repeatable whether both runs of A gave the same bits; if not, the difference means
   *     little: the graph changes its own inputs, say
   */
  public record Output(String name, Difference difference, boolean repeatable) {}

  /**
   * Compares on the CPU, with inputs that have their memory and values already.
   *
   * @see #compare(Graph, Registration, List, Runnable)
   */
  public static Verification compare(Graph graph, Registration rule) {
    return compare(graph, rule, List.of(Ggml.get().device(DeviceType.CPU)), () -> {});
  }

  /**
   * Compares. The graph's outputs are the nodes that are marked so, and its last node.
   *
   * @param graph its nodes have no memory: a scheduler that gave them some is reset first
   * @param rule is switched off and on, and left as it was; others stay as they are
   * @param devices the preferred ones first, the last one a CPU; each gets a backend of its own
   * @param inputs called before each run, once there is memory: writes the inputs that have none
   *     yet, and those that the graph changes
   * @throws IllegalStateException if a node has memory, or the registration is closed
   * @throws IllegalArgumentException if an output is of a type whose elements have no single
   *     values, or an operator's or an optimiser's registration is given
   */
  public static Verification compare(
      Graph graph, Registration rule, List<Device> devices, Runnable inputs) {
    Check.requireComputing(rule);
    List<Tensor> outputs = outputs(graph);
    boolean enabled = rule.isEnabled();
    try {
      rule.setEnabled(false);
      List<byte[]> first = run(graph, outputs, devices, inputs).outputs();
      rule.setEnabled(true);
      Run with = run(graph, outputs, devices, inputs);
      rule.setEnabled(false);
      List<byte[]> second = run(graph, outputs, devices, inputs).outputs();
      List<Output> compared = new ArrayList<>();
      for (int i = 0; i < outputs.size(); i++) {
        Tensor output = outputs.get(i);
        compared.add(
            new Output(
                (output.name().isEmpty() ? output.op() : output.name()) + " " + output,
                Difference.of(
                    Elements.values(output.type(), with.outputs().get(i)),
                    Elements.values(output.type(), first.get(i))),
                Arrays.equals(first.get(i), second.get(i))));
      }
      return of(rule.name(), compared, with.plans());
    } finally {
      rule.setEnabled(enabled);
    }
  }

  private static List<Tensor> outputs(Graph graph) {
    List<Tensor> nodes = graph.nodes();
    for (Tensor node : nodes) {
      if (!node.isView() && node.isAllocated()) {
        throw new IllegalStateException(
            "the node \"%s\" (%s) has memory; reset the scheduler that gave it some"
                .formatted(node.name(), node.op()));
      }
    }
    List<Tensor> outputs = new ArrayList<>(nodes.stream().filter(Tensor::isOutput).toList());
    if (!nodes.isEmpty() && !outputs.contains(nodes.getLast())) {
      outputs.add(nodes.getLast());
    }
    return outputs;
  }

  private record Run(List<byte[]> outputs, List<Plan> plans) {}

  private static Run run(Graph graph, List<Tensor> outputs, List<Device> devices, Runnable inputs) {
    try (Session session = new Session(devices);
        Scheduler scheduler = session.newScheduler()) {
      scheduler.allocate(graph);
      BuiltGraph.poisonNodes(graph);
      inputs.run();
      scheduler.compute(graph);
      return new Run(outputs.stream().map(Elements::packed).toList(), session.plans());
    }
  }

  private static Verification of(String rule, List<Output> outputs, List<Plan> plans) {
    int steps = 0;
    int fusedNodes = 0;
    Set<String> refusals = new LinkedHashSet<>();
    for (Plan plan : plans) {
      for (Plan.Step step : plan.stepsOf(rule)) {
        steps++;
        fusedNodes += step.fused() ? step.count() : 0;
      }
      for (Plan.Refusal refusal : plan.refusals()) {
        if (refusal.kernel().equals(rule)) {
          Plan.Node node = plan.nodes().get(refusal.node());
          refusals.add(
              "node %d (%s \"%s\"): %s"
                  .formatted(refusal.node(), node.op(), node.name(), refusal.reason()));
        }
      }
    }
    return new Verification(rule, outputs, steps, fusedNodes, List.copyOf(refusals));
  }

  /** Whether the kernel or rule computed anything. */
  public boolean fired() {
    return steps > 0;
  }

  /** Whether the runs without it gave the same bits, for all outputs. */
  public boolean repeatable() {
    return outputs.stream().allMatch(Output::repeatable);
  }

  /** The largest absolute error of all outputs. */
  public double maxAbsolute() {
    return outputs.stream()
        .mapToDouble(output -> output.difference().maxAbsolute())
        .max()
        .orElse(0);
  }

  /** The largest relative error of all outputs. */
  public double maxRelative() {
    return outputs.stream()
        .mapToDouble(output -> output.difference().maxRelative())
        .max()
        .orElse(0);
  }

  /** A line for the rule, one for each output, one for each refusal. */
  @Override
  public String toString() {
    StringBuilder text =
        new StringBuilder(
            fired()
                ? "%s computed %d steps, %d nodes of them fused%n"
                    .formatted(rule, steps, fusedNodes)
                : "%s did not fire%n".formatted(rule));
    for (Output output : outputs) {
      text.append(
          "  %s: %s; A and A %s%n"
              .formatted(
                  output.name(),
                  output.difference(),
                  output.repeatable() ? "are equal" : "DIFFER: the graph is not repeatable"));
    }
    for (String refusal : refusals) {
      text.append("  refused at ").append(refusal).append(System.lineSeparator());
    }
    return text.toString();
  }
}
