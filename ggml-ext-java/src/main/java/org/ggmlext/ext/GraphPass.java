package org.ggmlext.ext;

/** Reorders a graph before rules are matched. */
@FunctionalInterface
public interface GraphPass {
  /**
   * Looks at a graph, and may call {@link GraphView#delay}.
   *
   * @param graph the part of a graph that one backend computes, valid during this call only
   * @throws Exception is logged; the graph stays as it was left
   */
  void optimize(GraphView graph) throws Exception;
}
