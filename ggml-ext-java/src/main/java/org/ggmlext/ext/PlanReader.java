package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.ggmlext.Shape;
import org.ggmlext.bindings.ggml_ext_h;
import org.ggmlext.bindings.ggml_ext_plan_info;
import org.ggmlext.bindings.ggml_ext_plan_node;
import org.ggmlext.bindings.ggml_ext_plan_refusal;
import org.ggmlext.bindings.ggml_ext_plan_step;
import org.ggmlext.internal.Native;

/** Copies the plans of a backend out of the C library. */
final class PlanReader {
  private final MemorySegment plan;
  private final Arena arena;

  private PlanReader(MemorySegment plan, Arena arena) {
    this.plan = plan;
    this.arena = arena;
  }

  /** The plans that the backend holds now, the most recent first. */
  static List<Plan> plans(MemorySegment backend) {
    List<Plan> plans = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      while (true) {
        int status = ggml_ext_h.ggml_ext_plan_copy(backend, plans.size(), out);
        if (status == ggml_ext_h.GGML_EXT_STATUS_NOT_FOUND()) {
          return List.copyOf(plans);
        }
        ExtStatus.check(status);
        plans.add(read(out.get(ValueLayout.ADDRESS, 0), arena));
      }
    }
  }

  /** What a device would do with one node. */
  static Plan single(MemorySegment device, MemorySegment node) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
      ExtStatus.check(ggml_ext_h.ggml_ext_plan_single(device, node, out));
      return read(out.get(ValueLayout.ADDRESS, 0), arena);
    }
  }

  private static Plan read(MemorySegment plan, Arena arena) {
    try {
      return new PlanReader(plan, arena).read();
    } finally {
      ggml_ext_h.ggml_ext_plan_free(plan);
    }
  }

  private Plan read() {
    MemorySegment info = ggml_ext_plan_info.allocate(arena);
    ggml_ext_plan_info.struct_size(info, info.byteSize());
    ExtStatus.check(ggml_ext_h.ggml_ext_plan_get_info(plan, info));
    return new Plan(
        Native.string(ggml_ext_plan_info.backend(info)),
        nodes(ggml_ext_plan_info.n_nodes(info)),
        steps(ggml_ext_plan_info.n_steps(info)),
        refusals(ggml_ext_plan_info.n_refusals(info)),
        ggml_ext_plan_info.workspace_size(info),
        ggml_ext_plan_info.before_allocation(info),
        ggml_ext_plan_info.n_computed(info));
  }

  private List<Plan.Node> nodes(int count) {
    MemorySegment node = ggml_ext_plan_node.allocate(arena);
    List<Plan.Node> nodes = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ggml_ext_plan_node.struct_size(node, node.byteSize());
      ExtStatus.check(ggml_ext_h.ggml_ext_plan_get_node(plan, i, node));
      nodes.add(
          new Plan.Node(
              Native.string(ggml_ext_plan_node.name(node)),
              Native.string(ggml_ext_plan_node.op(node)),
              ggml_ext_plan_node.type(node),
              new Shape(
                  ggml_ext_plan_node.ne(node, 0),
                  ggml_ext_plan_node.ne(node, 1),
                  ggml_ext_plan_node.ne(node, 2),
                  ggml_ext_plan_node.ne(node, 3))));
    }
    return nodes;
  }

  private List<Plan.Step> steps(int count) {
    MemorySegment step = ggml_ext_plan_step.allocate(arena);
    List<Plan.Step> steps = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ggml_ext_plan_step.struct_size(step, step.byteSize());
      ExtStatus.check(ggml_ext_h.ggml_ext_plan_get_step(plan, i, step));
      MemorySegment kernel = ggml_ext_plan_step.kernel(step);
      steps.add(
          new Plan.Step(
              ggml_ext_plan_step.first(step),
              ggml_ext_plan_step.n_nodes(step),
              Native.isNull(kernel) ? null : Native.string(kernel),
              ggml_ext_plan_step.fused(step),
              ggml_ext_plan_step.workspace_size(step),
              ggml_ext_plan_step.n_executed(step),
              ggml_ext_plan_step.time_ns(step),
              ggml_ext_plan_step.n_timed(step)));
    }
    return steps;
  }

  private List<Plan.Refusal> refusals(int count) {
    MemorySegment refusal = ggml_ext_plan_refusal.allocate(arena);
    List<Plan.Refusal> refusals = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ggml_ext_plan_refusal.struct_size(refusal, refusal.byteSize());
      ExtStatus.check(ggml_ext_h.ggml_ext_plan_get_refusal(plan, i, refusal));
      refusals.add(
          new Plan.Refusal(
              ggml_ext_plan_refusal.node(refusal),
              Native.string(ggml_ext_plan_refusal.kernel(refusal)),
              Native.string(ggml_ext_plan_refusal.reason(refusal))));
    }
    return refusals;
  }
}
