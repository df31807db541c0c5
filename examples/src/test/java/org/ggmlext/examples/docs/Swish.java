package org.ggmlext.examples.docs;

import java.util.List;
import org.ggmlext.Type;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.OutputSpec;
import org.ggmlext.ext.TensorInfo;

// docs: an operator with attributes
final class Swish {
  record Attributes(float beta) {}

  static final Operator<Attributes> OPERATOR =
      Operator.of("app.swish.v1", Attributes.class, Swish::infer);

  private static OutputSpec infer(List<TensorInfo> sources, Attributes attributes) {
    if (sources.size() != 1) {
      throw new IllegalArgumentException("swish takes 1 source, not " + sources.size());
    }
    TensorInfo x = sources.getFirst();
    if (!x.is(Type.F32)) {
      throw new IllegalArgumentException("x is " + x + ", expected F32");
    }
    return OutputSpec.like(x);
  }

  // docs: end
  private Swish() {}
}
