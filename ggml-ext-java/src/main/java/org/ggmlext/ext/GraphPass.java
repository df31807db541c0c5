package org.ggmlext.ext;

/** Reorders a graph before rules are matched. */
@FunctionalInterface
public interface GraphPass {
  /**
   * Looks at a graph, and may call {@link GraphView#delay}.
   *
   * @param graph the part of a graph that one backend computes, valid during this call only
   * @throws Exception fails the planning of the graph; it becomes the cause of what compute throws
   */
  void optimize(GraphView graph) throws Exception;
}
