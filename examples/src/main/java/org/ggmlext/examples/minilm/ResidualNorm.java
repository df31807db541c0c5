package org.ggmlext.examples.minilm;

import java.util.List;
import org.ggmlext.Type;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.TensorInfo;

/**
 * An operator whose kernel is native code: {@code minilm.residual_norm.v1(x[n, ...], bias[n],
 * residual[n, ...], scale[n], shift[n])}, all F32, gives {@code norm(x + bias + residual) * scale +
 * shift} for each row. Java says what it yields; {@code src/main/c/residual_norm.c} computes it.
 */
final class ResidualNorm {

  /**
   * The operator's attributes.
   *
   * @param epsilon added to the variance, at least 0
   */
  record Attributes(float epsilon) {}

  static final Operator<Attributes> OPERATOR =
      Operator.of("minilm.residual_norm.v1", Attributes.class, ResidualNorm::infer);

  private static final List<String> NAMES = List.of("x", "bias", "residual", "scale", "shift");

  private ResidualNorm() {}

  private static OutputSpec infer(List<TensorInfo> sources, Attributes attributes) {
    if (sources.size() != NAMES.size()) {
      throw new IllegalArgumentException(
          "residual_norm takes " + NAMES + ", not " + sources.size() + " sources");
    }
    if (!(attributes.epsilon() >= 0)) {
      throw new IllegalArgumentException(
          "epsilon is " + attributes.epsilon() + ", expected 0 or more");
    }
    TensorInfo x = sources.getFirst();
    for (int i = 0; i < sources.size(); i++) {
      TensorInfo source = sources.get(i);
      boolean rows = NAMES.get(i).equals("x") || NAMES.get(i).equals("residual");
      boolean fits = rows ? source.hasShapeOf(x) : source.ne(0) == x.ne(0) && source.rows() == 1;
      if (!source.is(Type.F32) || !source.isContiguous() || !fits) {
        throw new IllegalArgumentException(
            NAMES.get(i)
                + " is "
                + source
                + ", expected contiguous F32 "
                + (rows ? x.shape() : "[" + x.ne(0) + "]"));
      }
    }
    return OutputSpec.like(x);
  }
}
