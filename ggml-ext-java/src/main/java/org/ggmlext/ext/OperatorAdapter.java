package org.ggmlext.ext;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.ggmlext.bindings.ggml_ext_output;
import org.ggmlext.internal.callback.OperatorTarget;
import org.ggmlext.internal.callback.Raw;

/** Translates what C asks of an operator into calls of its Java object. */
final class OperatorAdapter implements OperatorTarget {
  private final Operator<?> operator;

  OperatorAdapter(Operator<?> operator) {
    this.operator = operator;
  }

  @Override
  public void infer(int count, long sources, long attributes, long output) throws Exception {
    List<TensorInfo> infos = new ArrayList<>(count);
    for (TensorInfo source : NodeInfo.tensors(count, sources)) {
      infos.add(Objects.requireNonNull(source, "a source of an operator's node is NULL"));
    }
    byte[] bytes =
        attributes == 0 ? new byte[0] : Raw.getBytes(attributes, operator.attributesSize());
    OutputSpec spec =
        Objects.requireNonNull(
            operator.infer(List.copyOf(infos), bytes),
            "inference returned null, expected an OutputSpec");
    Raw.putInt(output + ggml_ext_output.type$offset(), spec.type().value());
    long ne = output + ggml_ext_output.ne$offset();
    for (int i = 0; i < 4; i++) {
      Raw.putLong(ne + 8L * i, spec.shape().ne(i));
    }
  }

  @Override
  public String toString() {
    return operator.name();
  }
}
