package org.ggmlext.ext;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.ggmlext.bindings.ggml_ext_prepare_params;
import org.ggmlext.bindings.ggml_ext_prepared;
import org.ggmlext.internal.callback.Failures;
import org.ggmlext.internal.callback.KernelTarget;
import org.ggmlext.internal.callback.Raw;
import org.ggmlext.internal.callback.StepTarget;
import org.jspecify.annotations.Nullable;

/** Translates what C asks of a kernel, a rule or an optimiser into calls of its Java definition. */
final class KernelAdapter implements KernelTarget {
  private final Definition definition;
  private final boolean onHost;

  /**
   * An adapter.
   *
   * @param onHost whether the CPU can read the memory of the device that it is registered on
   */
  KernelAdapter(Definition definition, boolean onHost) {
    this.definition = definition;
    this.onHost = onHost;
  }

  @Override
  public @Nullable String supports(long node) {
    return ask(definition.supports(), node);
  }

  @Override
  public @Nullable String preferred(long node) {
    return ask(definition.preferred(), node);
  }

  private static @Nullable String ask(@Nullable Function<NodeInfo, Support> query, long node) {
    Support answer = Objects.requireNonNull(query).apply(new NodeInfo(node));
    return switch (Objects.requireNonNull(answer, "a query returned null, expected a Support")) {
      case Support.Yes yes -> null;
      case Support.No(String reason) -> reason;
    };
  }

  @Override
  public int match(long graph, int first) throws Exception {
    GraphView view = new GraphView(graph);
    try {
      return switch (match(view.from(first))) {
        case Match.Nodes nodes -> nodes.count();
        case Match.None(String reason) -> {
          if (!reason.isEmpty()) {
            Failures.setError(reason);
          }
          yield 0;
        }
      };
    } finally {
      view.end();
    }
  }

  private Match match(List<NodeInfo> nodes) throws Exception {
    Match match = Objects.requireNonNull(definition.matcher()).match(nodes);
    return Objects.requireNonNull(match, "a matcher returned null, expected a Match");
  }

  @Override
  public void optimize(long graph) throws Exception {
    GraphView view = new GraphView(graph);
    try {
      Objects.requireNonNull(definition.pass()).optimize(view);
    } finally {
      view.end();
    }
  }

  @Override
  public StepTarget prepare(long params, long out) throws Exception {
    int count = Raw.getInt(params + ggml_ext_prepare_params.n_nodes$offset());
    long array = Raw.getLong(params + ggml_ext_prepare_params.nodes$offset());
    List<NodeInfo> nodes = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      nodes.add(new NodeInfo(Raw.getLong(array + 8L * i)));
    }
    nodes = List.copyOf(nodes);
    PrepareContext context = new PrepareContext(nodes, captures(nodes));
    Prepared prepared = definition.prepare(context);
    Objects.requireNonNull(prepared, "prepare returned null, expected a Prepared");
    Raw.putLong(out + ggml_ext_prepared.workspace_size$offset(), prepared.workspaceBytes());
    Raw.putInt(out + ggml_ext_prepared.n_phases$offset(), prepared.phases());
    Raw.putInt(out + ggml_ext_prepared.n_tasks$offset(), prepared.maxTasks());
    return new PlannedStep(definition, array, context, prepared, onHost);
  }

  private Map<String, Capture> captures(List<NodeInfo> nodes) throws Exception {
    if (definition.matcher() == null) {
      return Map.of();
    }
    return match(nodes) instanceof Match.Nodes(int count, Map<String, Capture> captures)
        ? captures
        : Map.of();
  }

  @Override
  public String toString() {
    return definition.name();
  }
}
