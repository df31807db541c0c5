package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The example's two operators, alone in a graph, against double precision. */
class OperatorsTest {
  private static final int N = 384;

  private final Random random = new Random(1);
  private MiniLmExtensions extensions;
  private Backend backend;
  private Scheduler scheduler;
  private Context context;

  @BeforeEach
  void open() {
    Ggml ggml = Ggml.load();
    extensions = MiniLmExtensions.register(ggml);
    backend = ggml.device(DeviceType.CPU).newBackend();
    scheduler = Scheduler.of(backend);
    context = Context.forGraph(16);
  }

  @AfterEach
  void close() {
    context.close();
    scheduler.close();
    backend.close();
    extensions.close();
  }

  @Test
  @DisplayName("JAVA-6: pool_normalize is the normalised mean of each sequence's real rows")
  void poolsAndNormalizes() {
    int length = 5;
    int[] lengths = {5, 1, 3};
    float[] x = floats(N * length * lengths.length);

    float[] y = pool(length, lengths, x);

    for (int s = 0; s < lengths.length; s++) {
      double[] sum = new double[N];
      double squares = 0;
      for (int i = 0; i < N; i++) {
        for (int t = 0; t < lengths[s]; t++) {
          sum[i] += x[(s * length + t) * N + i];
        }
        squares += sum[i] * sum[i];
      }
      for (int i = 0; i < N; i++) {
        assertThat((double) y[s * N + i]).isCloseTo(sum[i] / Math.sqrt(squares), offset(1e-6));
      }
    }
  }

  @Test
  @DisplayName("pool_normalize of zeros is zero")
  void poolsZeros() {
    assertThat(pool(2, new int[] {2}, new float[2 * N])).containsOnly(0f);
  }

  @Test
  @DisplayName(
      "JAVA-4: a length outside of the sequence fails the compute with the kernel's exception as"
          + " cause")
  void refusesBadLengths() {
    assertThatExceptionOfType(GgmlException.class)
        .isThrownBy(() -> pool(2, new int[] {2, 3}, floats(4 * N)))
        .withCauseInstanceOf(IllegalArgumentException.class)
        .havingCause()
        .withMessage("length 1 is 3, expected 1 to 2");
    assertThat(pool(2, new int[] {2}, floats(2 * N))).hasSize(N);
  }

  @Test
  @DisplayName("JAVA-5: residual_norm is the layer norm of x + bias + residual, scaled and shifted")
  void normalizesSums() {
    int rows = 7;
    float epsilon = 1e-5f;
    float[][] in = {floats(N * rows), floats(N), floats(N * rows), floats(N), floats(N)};

    float[] y = residualNorm(rows, epsilon, in);

    for (int row = 0; row < rows; row++) {
      double[] sum = new double[N];
      double mean = 0;
      for (int i = 0; i < N; i++) {
        sum[i] = (double) in[0][row * N + i] + in[1][i] + in[2][row * N + i];
        mean += sum[i] / N;
      }
      double variance = 0;
      for (double value : sum) {
        variance += (value - mean) * (value - mean) / N;
      }
      for (int i = 0; i < N; i++) {
        double expected = (sum[i] - mean) / Math.sqrt(variance + epsilon) * in[3][i] + in[4][i];
        assertThat((double) y[row * N + i]).isCloseTo(expected, offset(1e-5));
      }
    }
  }

  @Test
  @DisplayName("OP-1: inference refuses sources of another number, type or shape, and says which")
  void refusesWrongSources() {
    Tensor x = context.newTensor(Type.F32, N, 4, 2);
    Tensor vector = context.newTensor(Type.F32, N);
    Tensor odd = context.newTensor(Type.F32, 7, 4, 2);
    Tensor lengths = context.newTensor(Type.I32, 3);

    assertRefused(
        () -> PoolNormalize.OPERATOR.create(context, x), "takes x and lengths, not 1 sources");
    assertRefused(() -> PoolNormalize.OPERATOR.create(context, odd, lengths), "x is ");
    assertRefused(() -> PoolNormalize.OPERATOR.create(context, x, lengths), "expected I32 [2]");
    assertRefused(() -> residualNorm(x, vector, x, vector, lengths), "shift is ");
    assertRefused(() -> residualNorm(x, vector, odd, vector, vector), "residual is ");
  }

  private static void assertRefused(ThrowingCallable create, String reason) {
    assertThatThrownBy(create)
        .rootCause()
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(reason);
  }

  private Tensor residualNorm(Tensor... sources) {
    return ResidualNorm.OPERATOR.create(context, new ResidualNorm.Attributes(0), sources);
  }

  private float[] pool(int length, int[] lengths, float[] x) {
    Tensor states = context.newTensor(Type.F32, N, length, lengths.length).asInput();
    Tensor counts = context.newTensor(Type.I32, lengths.length).asInput();
    Tensor pooled = PoolNormalize.OPERATOR.create(context, states, counts).asOutput();
    Graph graph = context.newGraph(16).expand(pooled);
    scheduler.allocate(graph);
    states.setFloats(x);
    counts.setInts(lengths);
    scheduler.compute(graph);
    return pooled.getFloats();
  }

  private float[] residualNorm(int rows, float epsilon, float[][] values) {
    Tensor[] sources = new Tensor[values.length];
    for (int i = 0; i < sources.length; i++) {
      sources[i] = context.newTensor(Type.F32, N, values[i].length == N ? 1 : rows).asInput();
    }
    Tensor normed =
        ResidualNorm.OPERATOR
            .create(context, new ResidualNorm.Attributes(epsilon), sources)
            .asOutput();
    Graph graph = context.newGraph(16).expand(normed);
    scheduler.allocate(graph);
    for (int i = 0; i < sources.length; i++) {
      sources[i].setFloats(values[i]);
    }
    scheduler.compute(graph);
    return normed.getFloats();
  }

  private float[] floats(int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return values;
  }
}
