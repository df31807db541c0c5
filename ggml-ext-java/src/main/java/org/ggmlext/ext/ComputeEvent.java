package org.ggmlext.ext;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import org.jspecify.annotations.Nullable;

/** One compute of a graph. */
@Name("org.ggmlext.Compute")
@Label("Graph Compute")
@Description("A graph was computed, by a scheduler or by a backend alone")
@Category("ggml-ext")
final class ComputeEvent extends Event {
  @Label("Backends")
  @Nullable String backends;

  @Label("Nodes")
  int nodes;
}
