package org.ggmlext.ext.ops;

import java.lang.invoke.MethodHandles;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Operator;
import org.jspecify.annotations.Nullable;

/**
 * {@code sd.linear_i8.v1}: a linear layer with INT8 weights. It computes
 *
 * <pre>{@code
 * Y[m][n] = float(sum over k of X[m][k] * W[n][k]) * X_scale[m] * W_scale[n] + bias[n]
 * }</pre>
 *
 * with an exact sum, and the float operations in this order, each rounded. A scale or bias that is
 * not there is left out.
 *
 * <p>X is INT8, or F32 that is quantised as by {@link QuantizeI8ConvRot}, here row by row with
 * group 1. So with finite scales a row of zeros gives the bias, or zeros where there is none; a row
 * with a NaN or an infinity gives NaN for all its outputs, and changes no other row.
 *
 * @param weight W, I8 [K, N] with K at most 131071
 * @param weightScale W_scale, contiguous F32 [N], [1, N], or [1] for all outputs
 * @param bias contiguous F32 [N]
 */
public record LinearI8(Tensor weight, @Nullable Tensor weightScale, @Nullable Tensor bias) {
  private static final int WEIGHT_SCALE = 1;
  private static final int ROW_SCALE = 2;
  private static final int BIAS = 4;

  record Attributes(int sources, int packedRows) {}

  private static final Operator<Attributes> OPERATOR =
      Operator.ofLibrary("sd.linear_i8.v1", Attributes.class, MethodHandles.lookup());

  /** A layer of these tensors. */
  public LinearI8 {
    Objects.requireNonNull(weight, "weight");
  }

  /** A layer without scale and bias. */
  public static LinearI8 of(Tensor weight) {
    return new LinearI8(weight, null, null);
  }

  public LinearI8 withWeightScale(Tensor scale) {
    return new LinearI8(weight, scale, bias);
  }

  public LinearI8 withBias(Tensor values) {
    return new LinearI8(weight, weightScale, values);
  }

  /**
   * The layer of F32 rows, which are quantised row by row, or of I8 rows without scales.
   *
   * @param nodes where the node is made
   * @param x F32 or I8 [K, M, ...], its rows evenly spaced
   * @return F32 [N, M, ...]
   * @throws IllegalArgumentException if a type or shape is another, or the kernel library is not
   *     registered
   * @throws GgmlException if the context is full
   */
  public Tensor create(Context nodes, Tensor x) {
    return create(nodes, x, null, 0);
  }

  /**
   * The layer of I8 rows with scales.
   *
   * @param nodes where the node is made
   * @param x I8 [K, M, ...], its rows evenly spaced
   * @param xScale contiguous F32 [M], [1, M], or [1] for all rows; M counts the rows of all
   *     dimensions
   * @return F32 [N, M, ...]
   * @throws IllegalArgumentException if a type or shape is another, or the kernel library is not
   *     registered
   * @throws GgmlException if the context is full
   */
  public Tensor mulMatI8(Context nodes, Tensor x, Tensor xScale) {
    return create(nodes, x, Objects.requireNonNull(xScale, "xScale"), 0);
  }

  /**
   * The layer of packed rows.
   *
   * @param nodes where the node is made
   * @param packed what {@link QuantizeI8ConvRot} made of rows of K features
   * @param rows how many rows, M
   * @return F32 [N, M]
   * @throws IllegalArgumentException if a type or shape is another, there are no rows, or more than
   *     an int counts, or the kernel library is not registered
   * @throws GgmlException if the context is full
   */
  public Tensor createPacked(Context nodes, Tensor packed, long rows) {
    if (rows < 1 || rows > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "rows is " + rows + ", expected 1 to " + Integer.MAX_VALUE);
    }
    return create(nodes, Objects.requireNonNull(packed, "packed"), null, (int) rows);
  }

  private Tensor create(Context nodes, Tensor x, @Nullable Tensor xScale, int packedRows) {
    Objects.requireNonNull(nodes, "nodes");
    List<Tensor> sources = new ArrayList<>(List.of(weight, Objects.requireNonNull(x, "x")));
    int there =
        add(sources, weightScale, WEIGHT_SCALE)
            | add(sources, xScale, ROW_SCALE)
            | add(sources, bias, BIAS);
    return OPERATOR.create(
        nodes, new Attributes(there, packedRows), sources.toArray(Tensor[]::new));
  }

  private static int add(List<Tensor> sources, @Nullable Tensor source, int flag) {
    if (source == null) {
      return 0;
    }
    sources.add(source);
    return flag;
  }
}
