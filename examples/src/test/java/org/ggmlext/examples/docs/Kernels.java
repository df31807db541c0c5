package org.ggmlext.examples.docs;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;
import org.ggmlext.Type;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.NodeInfo;
import org.ggmlext.ext.Prepared;
import org.ggmlext.ext.Support;
import org.ggmlext.ext.Task;

/** The kernels that docs/writing-a-kernel.md shows. */
final class Kernels {
  private Kernels() {}

  // docs: rows
  static final Kernel ROWS =
      Kernel.builder("app.swish.java", Swish.OPERATOR)
          .supports(
              node ->
                  Support.when(
                      node.src(0).isRowContiguous(), node.src(0) + " has gaps in its rows"))
          .rows(Kernels::swish);

  private static void swish(Task task, long first, long end) {
    float beta = task.attributes(Swish.OPERATOR).beta();
    MemorySegment x = task.src(0).data();
    MemorySegment y = task.dst().data();
    for (long row = first; row < end; row++) {
      long from = task.src(0).rowOffset(row);
      long to = task.dst().rowOffset(row);
      for (long i = 0; i < task.dst().ne(0); i++) {
        float v = x.get(ValueLayout.JAVA_FLOAT, from + 4 * i);
        y.set(ValueLayout.JAVA_FLOAT, to + 4 * i, v / (1 + (float) Math.exp(-beta * v)));
      }
    }
  }

  // docs: end

  // docs: override
  static final Kernel OVERRIDE =
      Kernel.builder("app.sqr.java", "SQR")
          .supports(Kernels::supports)
          .preferred(node -> Support.when(node.dst().ne(0) >= 64, "its rows are short"))
          .priority(10)
          .rows(Kernels::square);

  private static Support supports(NodeInfo node) {
    return Support.when(node.dst().is(Type.F32) && node.src(0).is(Type.F32), "only F32")
        .and(
            node.src(0).isRowContiguous() && node.dst().isRowContiguous(),
            "the elements of a row have gaps between them");
  }

  // docs: end

  // docs: function
  static Support isRelu(NodeInfo node) {
    return Support.when("RELU".equals(node.function()), "it is " + node.function() + ", not RELU");
  }

  // docs: end

  // docs: vector
  private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();

  private static void square(Task task, long first, long end) {
    MemorySegment x = task.src(0).data();
    MemorySegment y = task.dst().data();
    int n = Math.toIntExact(task.dst().ne(0));
    int whole = SPECIES.loopBound(n);
    for (long row = first; row < end; row++) {
      long from = task.src(0).rowOffset(row);
      long to = task.dst().rowOffset(row);
      for (int i = 0; i < whole; i += SPECIES.length()) {
        FloatVector v = FloatVector.fromMemorySegment(SPECIES, x, from + 4L * i, ORDER);
        v.mul(v).intoMemorySegment(y, to + 4L * i, ORDER);
      }
      if (whole < n) {
        VectorMask<Float> rest = SPECIES.indexInRange(whole, n);
        FloatVector v = FloatVector.fromMemorySegment(SPECIES, x, from + 4L * whole, ORDER, rest);
        v.mul(v).intoMemorySegment(y, to + 4L * whole, ORDER, rest);
      }
    }
  }

  // docs: end

  // docs: phases
  private static final int MAX_TASKS = 64;

  /** SUM of a contiguous F32 tensor: each task adds its share, then one task adds the shares. */
  static final Kernel PHASES =
      Kernel.builder("app.sum.java", "SUM")
          .supports(
              node ->
                  Support.when(
                      node.src(0).is(Type.F32) && node.src(0).isContiguous(),
                      "only contiguous F32"))
          .prepare(
              context ->
                  Prepared.NOTHING
                      .withWorkspace(8L * MAX_TASKS)
                      .withPhases(2)
                      .withMaxTasks(MAX_TASKS))
          .run(
              task -> {
                MemorySegment shares = task.workspace();
                if (task.phase() == 0) {
                  MemorySegment x = task.src(0).data();
                  long n = task.src(0).info().elements();
                  double share = 0;
                  for (long i = task.first(n); i < task.end(n); i++) {
                    share += x.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                  }
                  shares.setAtIndex(ValueLayout.JAVA_DOUBLE, task.ith(), share);
                } else if (task.ith() == 0) {
                  double sum = 0;
                  for (int i = 0; i < task.nth(); i++) {
                    sum += shares.getAtIndex(ValueLayout.JAVA_DOUBLE, i);
                  }
                  task.dst().setFloat(0, 0, 0, 0, (float) sum);
                }
              });

  // docs: end

  // docs: whole
  static final Kernel WHOLE =
      Kernel.builder("app.sin.java", "SIN")
          .supports(
              node ->
                  Support.when(
                      node.src(0).is(Type.F32) && node.src(0).isContiguous(),
                      "only contiguous F32"))
          .execute(
              execution -> {
                MemorySegment x = execution.src(0).data();
                MemorySegment y = execution.dst().data();
                long n = execution.dst().info().elements();
                execution.parallel(
                    (ith, nth) -> {
                      for (long i = n * ith / nth; i < n * (ith + 1) / nth; i++) {
                        float v = x.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                        y.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) Math.sin(v));
                      }
                    });
              });

  // docs: end
}
