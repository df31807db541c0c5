package org.example.snake;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.ggmlext.Type;
import org.ggmlext.ext.Capture;
import org.ggmlext.ext.FusionRule;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.Pattern;
import org.ggmlext.ext.Prepared;

/** {@code snake(x + bias)} in one step, where bias is one row that every row of x gets. */
final class BiasSnake {
  private record Captures(Capture x, Capture bias) {}

  private static final Pattern PATTERN =
      Pattern.start("ADD")
          .capture("x", 0)
          .capture("bias", 1)
          .where(BiasSnake::addsOneRow, "F32 rows without gaps, and one row beside them")
          .then(Snake.OPERATOR.name());

  static final FusionRule RULE =
      FusionRule.builder("example.bias_snake", PATTERN)
          .prepare(
              context ->
                  Prepared.NOTHING.withState(
                      new Captures(context.capture("x"), context.capture("bias"))))
          .rows(
              (task, first, end) -> {
                Captures at = task.state(Captures.class);
                float a = task.attributes(Snake.OPERATOR).a();
                MemorySegment bias = task.tensor(at.bias()).row(0);
                long n = task.dst().ne(0);
                for (long row = first; row < end; row++) {
                  MemorySegment x = task.tensor(at.x()).row(row);
                  MemorySegment y = task.dst().row(row);
                  for (long i = 0; i < n; i++) {
                    float sum =
                        x.getAtIndex(ValueLayout.JAVA_FLOAT, i)
                            + bias.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                    y.setAtIndex(ValueLayout.JAVA_FLOAT, i, Snake.snake(sum, a));
                  }
                }
              });

  private BiasSnake() {}

  private static boolean addsOneRow(NodeInfo add) {
    return add.src(0).is(Type.F32)
        && add.src(0).isRowContiguous()
        && add.src(1).is(Type.F32)
        && add.src(1).isContiguous()
        && add.src(1).elements() == add.dst().ne(0);
  }
}
