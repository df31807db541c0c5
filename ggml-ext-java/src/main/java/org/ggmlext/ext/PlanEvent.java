package org.ggmlext.ext;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** A plan that was made for a graph, after its first compute. */
@Name("org.ggmlext.Plan")
@Label("Plan")
@Description("A backend planned a graph")
@Category("ggml-ext")
@StackTrace(false)
final class PlanEvent extends Event {
  @Label("Backend")
  @Nullable String backend;

  @Label("Nodes")
  int nodes;

  @Label("Extension Steps")
  int extensionSteps;

  @Label("Fused Groups")
  int fusedGroups;

  @Label("Refusals")
  int refusals;

  @Label("Workspace")
  @DataAmount
  long workspace;

  @Label("Before Allocation")
  @Description("Planned before memory was allocated, so that nodes could be fused")
  boolean beforeAllocation;

  @Label("Text")
  @Nullable String text;

  void fill(Plan plan) {
    backend = plan.backend();
    nodes = plan.nodes().size();
    extensionSteps = (int) plan.steps().stream().filter(step -> step.kernel() != null).count();
    fusedGroups = (int) plan.steps().stream().filter(Plan.Step::fused).count();
    refusals = plan.refusals().size();
    workspace = plan.workspaceBytes();
    beforeAllocation = plan.beforeAllocation();
    text = plan.toString();
  }
}
