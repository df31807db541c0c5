package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.ggmlext.Buffer;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ChangedWeightTest {
  private static final int K = 1024;
  private static final int N = 256;
  private static final int M = 8;

  private final OpsBench bench = new OpsBench();

  @AfterEach
  void close() {
    bench.close();
  }

  private static void assertProduct(Tensor y, float[] w, float[] x) {
    float[] values = y.getFloats();
    for (int m = 0; m < M; m++) {
      for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
          sum += (double) w[n * K + k] * x[m * K + k];
        }
        assertThat((double) values[m * N + n]).isCloseTo(sum, within(2e-3));
      }
    }
  }

  @Test
  @DisplayName(
      "CACHE-1: one element of a large weight, set anew through Tensor, is seen; so is fill")
  void oneElement() {
    Tensor w = bench.inputs.newTensor(Type.F32, K, N);
    Buffer memory = bench.inputs.allocate(bench.cpu);
    Tensor x = bench.floats(K, M);
    float[] weights = new float[K * N];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = (float) bench.random.nextGaussian();
    }
    w.setFloats(weights);
    Tensor y = bench.nodes.mulMat(w, x);
    assertProduct(bench.compute(y), weights, x.getFloats());
    for (int i : List.of(5, 3 * K + 700, K * N - 1)) {
      weights[i] += 100;
      w.setBytes(4L * i, MemorySegment.ofArray(new float[] {weights[i]}));
      assertProduct(bench.compute(y), weights, x.getFloats());
    }
    memory.fill((byte) 0);
    assertProduct(bench.compute(y), new float[K * N], x.getFloats());
  }
}
