package org.ggmlext.examples.docs;

import org.ggmlext.Type;
import org.ggmlext.ext.Capture;
import org.ggmlext.ext.FusionRule;
import org.ggmlext.ext.GraphOptimizer;
import org.ggmlext.ext.Match;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.Pattern;
import org.ggmlext.ext.Prepared;
import org.ggmlext.ext.TensorView;

/** The rules that docs/fusion.md shows. */
final class Fusion {
  private Fusion() {}

  // docs: a rule with a pattern
  private static final Pattern MUL_ADD =
      Pattern.start("MUL")
          .capture("a", 0)
          .capture("b", 1)
          .where(Fusion::isPlain, "F32 without gaps, no broadcast")
          .then("ADD")
          .captureOther("c")
          .where(Fusion::isPlain, "F32 without gaps, no broadcast")
          .where(sum -> !sum.src(0).isSameTensor(sum.src(1)), "another tensor beside the product");

  record Captures(Capture a, Capture b, Capture c) {}

  static final FusionRule RULE =
      FusionRule.builder("app.mul_add", MUL_ADD)
          .prepare(
              context ->
                  Prepared.NOTHING.withState(
                      new Captures(
                          context.capture("a"), context.capture("b"), context.capture("c"))))
          .rows(
              (task, first, end) -> {
                Captures at = task.state(Captures.class);
                TensorView a = task.tensor(at.a());
                TensorView b = task.tensor(at.b());
                TensorView c = task.tensor(at.c());
                for (long row = first; row < end; row++) {
                  for (long i = 0; i < task.dst().ne(0); i++) {
                    float product = a.getFloat(i, row, 0, 0) * b.getFloat(i, row, 0, 0);
                    task.dst().setFloat(i, row, 0, 0, product + c.getFloat(i, row, 0, 0));
                  }
                }
              });

  private static boolean isPlain(NodeInfo node) {
    for (int i = 0; i < 2; i++) {
      if (!node.src(i).is(Type.F32)
          || !node.src(i).isContiguous()
          || !node.src(i).hasShapeOf(node.dst())) {
        return false;
      }
    }
    return true;
  }

  // docs: end

  // docs: a rule with a matcher
  static final FusionRule CHAIN =
      FusionRule.builder(
              "app.sqr_chain",
              "SQR",
              nodes -> {
                int count = 1;
                while (count < nodes.size()
                    && nodes.get(count).op().equals("SQR")
                    && nodes.get(count).src(0).isSameTensor(nodes.get(count - 1).dst())) {
                  count++;
                }
                if (count < 2) {
                  return Match.none("one SQR alone is left to ggml");
                }
                return nodes.getFirst().src(0).is(Type.F32)
                        && nodes.getFirst().src(0).isContiguous()
                    ? Match.nodes(count)
                    : Match.none("only contiguous F32");
              })
          .rows(
              (task, first, end) -> {
                TensorView x = task.node(0).src(0);
                int count = task.nodes().size();
                for (long row = first; row < end; row++) {
                  for (long i = 0; i < task.dst().ne(0); i++) {
                    float v = x.getFloat(i, row, 0, 0);
                    for (int times = 0; times < count; times++) {
                      v *= v;
                    }
                    task.dst().setFloat(i, row, 0, 0, v);
                  }
                }
              });

  // docs: end

  // docs: an optimiser
  /** Moves a MUL down to the ADD that reads it, so that the two follow each other. */
  static final GraphOptimizer TOGETHER =
      GraphOptimizer.of(
          "app.together",
          graph -> {
            for (int i = graph.size() - 1; i >= 0; i--) {
              for (int j = i + 2; j < graph.size() && graph.node(i).op().equals("MUL"); j++) {
                NodeInfo reader = graph.node(j);
                if (reader.op().equals("ADD")
                    && (reader.src(0).isSameTensor(graph.node(i).dst())
                        || reader.src(1).isSameTensor(graph.node(i).dst()))) {
                  graph.delay(i, 1, j); // refused, and nothing moves, where that is not safe
                  break;
                }
              }
            }
          });
  // docs: end
}
