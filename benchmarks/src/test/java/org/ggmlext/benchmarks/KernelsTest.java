package org.ggmlext.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import org.ggmlext.Ggml;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Plan;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Ratios compare equal work: every author's kernel gives what double precision gives. */
class KernelsTest {

  @ParameterizedTest
  @EnumSource(Work.class)
  @DisplayName("JAVA-6: the compared kernels give the same results")
  void sameResults(Work work) {
    for (Author author : Author.values()) {
      check(work, author, 1, 8, 1);
      check(work, author, 2, 16384, 4);
      check(work, author, 2, 77, 3);
    }
  }

  private static void check(Work work, Author author, int threads, int elements, int rows) {
    float[] x = new float[elements * rows];
    Random random = new Random(elements);
    for (int i = 0; i < x.length; i++) {
      x[i] = random.nextFloat(-2, 2);
    }
    try (GraphBench graph = GraphBench.chain(work, author, threads, 3, elements, rows)) {
      graph.write(x);
      graph.compute();
      double[] expected = toDoubles(x);
      for (int node = 0; node < 3; node++) {
        expected = reference(work, expected, elements);
      }
      float[] actual = graph.read();
      assertThat(actual).hasSameSizeAs(x);
      for (int i = 0; i < x.length; i++) {
        assertThat((double) actual[i])
            .as("%s of %s, element %d", work, author, i)
            .isCloseTo(expected[i], within(2e-6 * Math.max(1, Math.abs(expected[i]))));
      }
      Plan plan = Extensions.attach(Ggml.load()).plans(graph.backend()).getFirst();
      assertThat(plan.stepsOf(work.kernel(author))).hasSize(3);
    }
  }

  private static double[] toDoubles(float[] x) {
    double[] values = new double[x.length];
    for (int i = 0; i < x.length; i++) {
      values[i] = x[i];
    }
    return values;
  }

  private static double[] reference(Work work, double[] x, int elements) {
    double[] y = new double[x.length];
    for (int first = 0; first < x.length; first += elements) {
      double squares = 0;
      for (int i = first; i < first + elements; i++) {
        squares += x[i] * x[i];
      }
      for (int i = first; i < first + elements; i++) {
        y[i] =
            switch (work) {
              case AFFINE -> x[i] * 0.5 + 0.25;
              case RMS_NORM -> x[i] / Math.sqrt(squares / elements + 1e-6);
            };
      }
    }
    return y;
  }
}
