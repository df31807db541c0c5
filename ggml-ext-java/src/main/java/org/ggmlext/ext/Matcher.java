package org.ggmlext.ext;

import java.util.List;

/**
 * Finds the nodes that a fusion rule replaces. It answers for mathematics, types, layout and
 * hardware only; consumers, views and aliasing are the layer's business.
 */
@FunctionalInterface
public interface Matcher {
  /**
   * Matches nodes that follow each other.
   *
   * @param nodes the nodes from the first candidate on, in graph order, never empty; while a step
   *     is prepared exactly the nodes that were matched
   * @return how many of them the rule replaces
   * @throws Exception fails the planning of the graph; it becomes the cause of what compute throws
   */
  Match match(List<NodeInfo> nodes) throws Exception;
}
