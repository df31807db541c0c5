package org.ggmlext.kit;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.ggmlext.Device;
import org.ggmlext.DeviceType;
import org.ggmlext.Ggml;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.ggmlext.ext.Capture;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.FusionRule;
import org.ggmlext.ext.GraphOptimizer;
import org.ggmlext.ext.Kernel;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.Pattern;
import org.ggmlext.ext.Prepared;
import org.ggmlext.ext.Registration;
import org.ggmlext.ext.RowBody;
import org.ggmlext.ext.TaskBody;
import org.ggmlext.ext.TensorView;

/** Kernels and rules that the kit's tests try, right ones and wrong ones; closed after a test. */
final class KitBench implements AutoCloseable {
  private static final AtomicInteger NAMES = new AtomicInteger();

  /** Short sweeps: a batch of 1, odd sizes, a batch of more. */
  static final Shape[] FEW = {Shape.of(16, 6), Shape.of(7), Shape.of(9, 5, 3, 2)};

  private final Extensions extensions = Extensions.attach(Ggml.load());
  private final Device cpu = Ggml.load().device(DeviceType.CPU);
  private final List<Registration> registrations = new ArrayList<>();

  record Swish(float beta) {}

  static String unique(String base) {
    return base + "_" + NAMES.incrementAndGet();
  }

  private Registration own(Registration registration) {
    registrations.add(registration);
    return registration;
  }

  Registration register(Operator<?> operator) {
    return own(extensions.register(operator));
  }

  Registration register(Kernel kernel) {
    return own(extensions.register(cpu, kernel));
  }

  Registration register(FusionRule rule) {
    return own(extensions.register(cpu, rule));
  }

  Registration register(GraphOptimizer optimizer) {
    return own(extensions.register(cpu, optimizer));
  }

  static List<Input> one(Shape shape) {
    return List.of(Input.of(Type.F32, shape));
  }

  static List<Input> two(Shape shape) {
    return List.of(Input.of(Type.F32, shape), Input.of(Type.F32, shape));
  }

  /** x / (1 + exp(-beta x)). */
  static Operator<Swish> swish() {
    return Operator.of(
        unique("kit.swish") + ".v1",
        Swish.class,
        (sources, swish) -> OutputSpec.like(sources.get(0)));
  }

  static RowBody swishRows(Operator<Swish> operator) {
    return (task, first, end) -> {
      float beta = task.attributes(operator).beta();
      TensorView x = task.src(0);
      TensorView y = task.dst();
      forRows(
          x,
          first,
          end,
          (i0, i1, i2, i3) -> {
            float v = x.getFloat(i0, i1, i2, i3);
            y.setFloat(i0, i1, i2, i3, (float) (v / (1 + Math.exp(-beta * v))));
          });
    };
  }

  /** A check of a kernel of swish with beta 1.5. */
  OperatorCheck swishCheck(Operator<Swish> operator, Kernel kernel) {
    register(operator);
    return OperatorCheck.of(
            register(kernel),
            (context, in) -> operator.create(context, new Swish(1.5f), in.get(0)),
            in -> {
              double[] x = in.get(0).toArray();
              for (int i = 0; i < x.length; i++) {
                x[i] = x[i] / (1 + Math.exp(-1.5 * x[i]));
              }
              return x;
            })
        .inputs(KitBench::one)
        .shapes(FEW);
  }

  interface Element {
    void at(long i0, long i1, long i2, long i3);
  }

  static void forRows(TensorView tensor, long first, long end, Element element) {
    for (long row = first; row < end; row++) {
      long plane = row / tensor.ne(1);
      for (long i = 0; i < tensor.ne(0); i++) {
        element.at(i, row % tensor.ne(1), plane % tensor.ne(2), plane / tensor.ne(2));
      }
    }
  }

  static TaskBody add() {
    return TaskBody.rows(
        (task, first, end) -> {
          TensorView a = task.src(0);
          TensorView b = task.src(1);
          forRows(
              task.dst(),
              first,
              end,
              (i0, i1, i2, i3) ->
                  task.dst()
                      .setFloat(
                          i0, i1, i2, i3, a.getFloat(i0, i1, i2, i3) + b.getFloat(i0, i1, i2, i3)));
        });
  }

  record ScaleAdd(float factor, float bias, Capture x, Capture y) {}

  /** scale(x) + y in one step, off by an error. */
  static FusionRule scaleAdd(float error) {
    return FusionRule.builder(
            unique("kit.scale_add"),
            Pattern.start("SCALE").capture("x", 0).then("ADD").captureOther("y"))
        .prepare(
            context ->
                Prepared.NOTHING.withState(
                    new ScaleAdd(
                        context.nodes().getFirst().opParamFloat(0),
                        context.nodes().getFirst().opParamFloat(1),
                        context.capture("x"),
                        context.capture("y"))))
        .rows(
            (task, first, end) -> {
              ScaleAdd state = task.state(ScaleAdd.class);
              TensorView x = task.tensor(state.x());
              TensorView y = task.tensor(state.y());
              forRows(
                  task.dst(),
                  first,
                  end,
                  (i0, i1, i2, i3) -> {
                    float scaled = x.getFloat(i0, i1, i2, i3) * state.factor() + state.bias();
                    float sum = scaled + y.getFloat(i0, i1, i2, i3);
                    task.dst().setFloat(i0, i1, i2, i3, sum + error);
                  });
            });
  }

  static GraphBuilder scaleAddGraph() {
    return (context, in) -> context.add(context.scaleBias(in.get(0), 3, 0.5f), in.get(1));
  }

  @Override
  public void close() {
    registrations.reversed().forEach(Registration::close);
  }
}
