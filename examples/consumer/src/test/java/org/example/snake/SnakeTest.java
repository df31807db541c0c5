package org.example.snake;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.ggmlext.Backend;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.GgmlException;
import org.ggmlext.Scheduler;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.Plan;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class SnakeTest {
  private static final int ROW = 37;
  private static final int ROWS = 5;
  private static final float A = 1.7f;

  private final Ggml ggml = Ggml.load();
  private final Extensions extensions = Extensions.attach(ggml);
  private final Device cpu = ggml.device(DeviceType.CPU);
  private final Backend backend = cpu.newBackend().threads(2);
  private final Scheduler scheduler = Scheduler.of(backend);
  private final Context inputs = Context.forTensors(2);
  private final Context nodes = Context.forGraph(8);
  private final List<AutoCloseable> registrations = new ArrayList<>();
  private final float[] values = values(ROW * ROWS, 0.9);
  private final float[] biases = values(ROW, 2.3);
  private Tensor x;
  private Tensor bias;

  @BeforeEach
  void register() {
    registrations.add(extensions.register(Snake.OPERATOR));
    registrations.add(extensions.register(cpu, Snake.KERNEL));
    x = inputs.newTensor(Type.F32, ROW, ROWS);
    bias = inputs.newTensor(Type.F32, ROW);
    inputs.allocate(cpu);
    x.setFloats(values);
    bias.setFloats(biases);
  }

  /** What a live backend has planned with cannot be withdrawn, so registrations close last. */
  @AfterEach
  void close() throws Exception {
    scheduler.close();
    backend.close();
    nodes.close();
    inputs.close();
    for (AutoCloseable registration : registrations.reversed()) {
      registration.close();
    }
  }

  private static float[] values(int count, double step) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) (3 * Math.sin(step * i + 0.4));
    }
    return values;
  }

  private static double snake(double x) {
    double sine = Math.sin(A * x);
    return x + sine * sine / A;
  }

  private void assertComputes(Tensor y, boolean withBias) {
    scheduler.compute(nodes.newGraph(8).expand(y.asOutput()));
    double[] expected = new double[ROW * ROWS];
    double[] actual = new double[ROW * ROWS];
    float[] found = y.getFloats();
    for (int i = 0; i < expected.length; i++) {
      expected[i] = snake(values[i] + (withBias ? (double) biases[i % ROW] : 0));
      actual[i] = found[i];
    }
    assertArrayEquals(expected, actual, 2e-6);
  }

  private Plan plan() {
    return extensions.plans(backend).getFirst();
  }

  private Tensor snakeOf(Tensor source) {
    return Snake.OPERATOR.create(nodes, new Snake.Attributes(A), source);
  }

  @Test
  @DisplayName("The kernel in Java computes the operator")
  void kernelInJava() {
    assertComputes(snakeOf(x), false);
    assertEquals(1, plan().stepsOf("example.snake.java").size());
  }

  @Test
  @DisplayName("The kernel in C goes before the one in Java")
  void kernelInC() {
    registrations.add(extensions.register(cpu, KernelLibrary.load(Main.LIBRARY)));
    assertComputes(snakeOf(x), false);
    assertEquals(1, plan().stepsOf("example.snake.c").size());
  }

  @Test
  @DisplayName("Addition of a bias and snake become one step")
  void fusion() {
    registrations.add(extensions.register(cpu, BiasSnake.RULE));
    assertComputes(snakeOf(nodes.add(x, bias)), true);
    assertEquals(2, plan().stepsOf("example.bias_snake").getFirst().count());
  }

  @Test
  @DisplayName("Where the sum is read by others too, the plan says why nothing was fused")
  void refusedFusion() {
    registrations.add(extensions.register(cpu, BiasSnake.RULE));
    assertComputes(snakeOf(nodes.add(x, bias).asOutput()), true);
    assertTrue(plan().stepsOf("example.bias_snake").isEmpty());
    assertEquals("example.bias_snake", plan().refusals().getFirst().kernel());
  }

  @Test
  @DisplayName("Without the rule the same nodes run singly")
  void withoutRule() {
    assertComputes(snakeOf(nodes.add(x, bias)), true);
    assertEquals(1, plan().stepsOf("example.snake.java").getFirst().count());
  }

  @Test
  @DisplayName("A node that makes no sense is refused, with what inference threw as the cause")
  void refusesNonsense() {
    GgmlException refusal =
        assertThrows(
            GgmlException.class,
            () -> Snake.OPERATOR.create(nodes, new Snake.Attributes(0), x));
    assertEquals("a is 0", refusal.getCause().getMessage());
  }
}
