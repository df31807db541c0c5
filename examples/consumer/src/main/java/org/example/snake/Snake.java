package org.example.snake;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.util.List;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.Support;
import org.ggmlext.ext.TensorInfo;

/** The activation {@code y = x + sin(a x)^2 / a}, which ggml does not have. */
final class Snake {
  /** In C: {@code struct { float a; }}. */
  record Attributes(float a) {}

  /** The lookup lets ggml-ext see the record inside this module. */
  static final Operator<Attributes> OPERATOR =
      Operator.of("example.snake.v1", Attributes.class, MethodHandles.lookup(), Snake::infer);

  static final Kernel KERNEL =
      Kernel.builder("example.snake.java", OPERATOR)
          .supports(Snake::supports)
          .rows(
              (task, first, end) -> {
                float a = task.attributes(OPERATOR).a();
                long n = task.dst().ne(0);
                for (long row = first; row < end; row++) {
                  MemorySegment x = task.src(0).row(row);
                  MemorySegment y = task.dst().row(row);
                  for (long i = 0; i < n; i++) {
                    y.setAtIndex(
                        ValueLayout.JAVA_FLOAT,
                        i,
                        snake(x.getAtIndex(ValueLayout.JAVA_FLOAT, i), a));
                  }
                }
              });

  private Snake() {}

  static float snake(float x, float a) {
    float sine = (float) Math.sin(a * x);
    return x + sine * sine / a;
  }

  /** What no kernel could compute is refused when the node is made. */
  private static OutputSpec infer(List<TensorInfo> sources, Attributes attributes) {
    if (sources.size() != 1 || !sources.getFirst().is(Type.F32)) {
      throw new IllegalArgumentException("snake takes one F32 tensor, not " + sources);
    }
    if (attributes.a() == 0) {
      throw new IllegalArgumentException("a is 0");
    }
    return OutputSpec.like(sources.getFirst());
  }

  /** What this kernel cannot compute is left to others. */
  private static Support supports(NodeInfo node) {
    return Support.when(node.src(0).isRowContiguous(), "only rows without gaps");
  }
}
