package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What ggml would end the process over is refused before, and leaves the context as it was. */
class ValidationTest {
  private static final RopeParams ROPE = RopeParams.of(4, RopeMode.NORMAL, 10000);

  private Context context;

  @BeforeEach
  void makeContext() {
    Ggml.load();
    context = Context.forTensors(64);
  }

  @AfterEach
  void closeContext() {
    context.close();
  }

  private static Tensor f32(Context c, long... ne) {
    return c.newTensor(Type.F32, ne);
  }

  private static Tensor of(Context c, Type type, long... ne) {
    return c.newTensor(type, ne);
  }

  private static Tensor permuted(Context c, long... ne) {
    return c.permute(f32(c, ne), 1, 0, 2, 3);
  }

  static Stream<Arguments> mistakes() {
    return Stream.of(
            elementwise(),
            activations(),
            reductions(),
            shapes(),
            rows(),
            matrices(),
            norms(),
            attention())
        .flatMap(s -> s);
  }

  private static Stream<Arguments> elementwise() {
    return Stream.of(
        bad("add of shapes that do not repeat", c -> c.add(f32(c, 3), f32(c, 2)), "divisor of 3"),
        bad("add of a longer second", c -> c.add(f32(c, 3), f32(c, 3, 2)), "divisor of 1"),
        bad("add of ints", c -> c.add(of(c, Type.I32, 3), of(c, Type.I32, 3)), "I32"),
        bad("add of F32 and F16", c -> c.add(f32(c, 3), of(c, Type.F16, 3)), "F16"),
        bad("mul of a permuted", c -> c.mul(permuted(c, 3, 2), f32(c, 2, 3)), "cont()"),
        bad("sub of quantised", c -> c.sub(of(c, Type.Q8_0, 32), f32(c, 32)), "Q8_0"),
        bad("div in place", c -> c.divInplace(f32(c, 3), f32(c, 2)), "divisor"),
        bad("scale of F16", c -> c.scale(of(c, Type.F16, 3), 2), "F32"),
        bad("scale of a permuted", c -> c.scale(permuted(c, 3, 2), 2), "contiguous"),
        bad("sqr of I32", c -> c.sqr(of(c, Type.I32, 3)), "I32"),
        bad("exp of a permuted", c -> c.exp(permuted(c, 3, 2)), "cont()"),
        bad("clamp with min over max", c -> c.clamp(f32(c, 3), 2, 1), "2.0 and 1.0"),
        bad("clamp with NaN", c -> c.clamp(f32(c, 3), Float.NaN, 1), "NaN"));
  }

  private static Stream<Arguments> activations() {
    return Stream.of(
        bad("gelu of BF16", c -> c.gelu(of(c, Type.BF16, 3)), "BF16"),
        bad("relu of I8", c -> c.relu(of(c, Type.I8, 3)), "I8"),
        bad("silu of a permuted", c -> c.silu(permuted(c, 3, 2)), "cont()"),
        bad("swiglu of odd rows", c -> c.swiglu(f32(c, 3)), "two halves"),
        bad("swiglu of two shapes", c -> c.swiglu(f32(c, 4), f32(c, 2)), "[4]"),
        bad("geglu of two types", c -> c.geglu(f32(c, 4), of(c, Type.F16, 4)), "F16"));
  }

  private static Stream<Arguments> reductions() {
    return Stream.of(
        bad("sum of I32", c -> c.sum(of(c, Type.I32, 3)), "I32"),
        bad("mean of F16", c -> c.mean(of(c, Type.F16, 3)), "F16"),
        bad("sumRows of a permuted", c -> c.sumRows(permuted(c, 3, 2)), "cont()"),
        bad("argmax of three dimensions", c -> c.argmax(f32(c, 3, 2, 2)), "two dimensions"),
        bad(
            "argsort of I32",
            c -> c.argsort(of(c, Type.I32, 3), ReduceOps.SortOrder.ASCENDING),
            "I32"));
  }

  private static Stream<Arguments> shapes() {
    return Stream.of(
        bad("reshape to more elements", c -> c.reshape(f32(c, 6), 4, 2), "8"),
        bad("reshape of a permuted", c -> c.reshape(permuted(c, 3, 2), 6), "contiguous"),
        bad("reshape to zero", c -> c.reshape(f32(c, 6), 0), "positive"),
        bad("reshape to five dimensions", c -> c.reshape(f32(c, 6), 1, 1, 1, 1, 6), "not 5"),
        bad("view over the end", c -> c.view1d(f32(c, 6), 4, 12), "reaches to byte 28"),
        bad("view before the begin", c -> c.view1d(f32(c, 6), 1, -4), "-4"),
        bad("view at half an element", c -> c.view1d(f32(c, 6), 1, 2), "multiple of 4"),
        bad("view with a negative stride", c -> c.view2d(f32(c, 6), 1, 2, -4, 8), "-4"),
        bad("view with a huge stride", c -> c.view2d(f32(c, 6), 1, 3, 1L << 62, 0), "reaches"),
        bad("view with overlapping rows", c -> c.view2d(f32(c, 6), 6, 6, 0, 0), "144"),
        bad("permute with an axis twice", c -> c.permute(f32(c, 6), 0, 0, 1, 2), "each once"),
        bad("permute with axis 4", c -> c.permute(f32(c, 6), 0, 1, 2, 4), "0 to 3"),
        bad("transpose of quantised", c -> c.transpose(of(c, Type.Q8_0, 32, 2)), "blocks"),
        bad("cast of I8 to F32", c -> c.cast(of(c, Type.I8, 3), Type.F32), "I8"),
        bad("cast of half a block", c -> c.cast(f32(c, 16), Type.Q8_0), "blocks of 32"),
        bad("cpy of other sizes", c -> c.cpy(f32(c, 3), f32(c, 4)), "4"),
        bad("cpy of I32 to F16", c -> c.cpy(of(c, Type.I32, 3), of(c, Type.F16, 3)), "F16"),
        bad("concat along dimension 4", c -> c.concat(f32(c, 3), f32(c, 3), 4), "0 to 3"),
        bad("concat of other sizes", c -> c.concat(f32(c, 3), f32(c, 2), 1), "dimension 0"),
        bad("concat of other types", c -> c.concat(f32(c, 3), of(c, Type.F16, 3), 0), "F16"),
        bad("repeat to no multiple", c -> c.repeat(f32(c, 3), Shape.of(4)), "divisor of 4"),
        bad("repeat of I8", c -> c.repeat(of(c, Type.I8, 3), Shape.of(6)), "I8"),
        bad("pad by less than nothing", c -> c.pad(f32(c, 3), -1, 0, 0, 0), "-1"),
        bad("pad of F16", c -> c.pad(of(c, Type.F16, 3), 1, 0, 0, 0), "F16"));
  }

  private static Stream<Arguments> rows() {
    return Stream.of(
        bad("getRows by floats", c -> c.getRows(f32(c, 3, 2), f32(c, 2)), "I32"),
        bad("getRows of I8", c -> c.getRows(of(c, Type.I8, 3, 2), ids(c, 2)), "I8"),
        bad("getRows by other batches", c -> c.getRows(f32(c, 3, 2, 2), ids(c, 2)), "fit"),
        bad("setRows of other rows", c -> c.setRows(f32(c, 3, 2), f32(c, 4, 1), ids(c, 1)), "fit"),
        bad("setRows by too few", c -> c.setRows(f32(c, 3, 2), f32(c, 3, 2), ids(c, 1)), "fit"),
        bad(
            "setRows of F16 rows",
            c -> c.setRows(f32(c, 3, 2), of(c, Type.F16, 3, 1), ids(c, 1)),
            "F16"));
  }

  private static Stream<Arguments> matrices() {
    return Stream.of(
        bad("mulMat of other rows", c -> c.mulMat(f32(c, 3, 2), f32(c, 4, 2)), "length"),
        bad("mulMat of a transposed", c -> c.mulMat(permuted(c, 3, 3), f32(c, 3, 2)), "cont()"),
        bad("mulMat of batches", c -> c.mulMat(f32(c, 3, 2, 2), f32(c, 3, 2, 3)), "multiples"),
        bad("mulMat by F16", c -> c.mulMat(f32(c, 3, 2), of(c, Type.F16, 3, 2)), "F32"),
        bad("mulMat of I32", c -> c.mulMat(of(c, Type.I32, 3, 2), f32(c, 3, 2)), "I32"),
        bad("mulMat of Q8_K", c -> c.mulMat(of(c, Type.Q8_K, 256, 2), f32(c, 256, 2)), "Q8_K"),
        bad(
            "mulMatId by floats",
            c -> c.mulMatId(f32(c, 3, 2, 2), f32(c, 3, 1, 1), f32(c, 1, 1)),
            "I32"),
        bad(
            "mulMatId by too many",
            c -> c.mulMatId(f32(c, 3, 2, 2), f32(c, 3, 1, 1), ids(c, 1, 2)),
            "fit"),
        bad("outProd of other rows", c -> c.outProd(f32(c, 3, 2), f32(c, 3, 3)), "rows"));
  }

  private static Stream<Arguments> norms() {
    return Stream.of(
        bad("norm of F16", c -> c.norm(of(c, Type.F16, 3), 0), "F16"),
        bad("rmsNorm with negative eps", c -> c.rmsNorm(f32(c, 3), -1), "-1"),
        bad("rmsNorm with NaN", c -> c.rmsNorm(f32(c, 3), Float.NaN), "NaN"),
        bad("groupNorm of no groups", c -> c.groupNorm(f32(c, 3, 2, 2), 0, 0), "0"),
        bad("softMax of a permuted", c -> c.softMax(permuted(c, 3, 2)), "contiguous"),
        bad("softMax of I32", c -> c.softMax(of(c, Type.I32, 3)), "I32"),
        bad("softMax with a short mask", c -> c.softMaxExt(f32(c, 3, 2), f32(c, 3), 1, 0), "mask"),
        bad("softMax with ALiBi, no mask", c -> c.softMaxExt(f32(c, 3), null, 1, 8), "maxBias"),
        bad("diagMaskInf with a negative past", c -> c.diagMaskInf(f32(c, 3, 2), -1), "-1"));
  }

  private static Stream<Arguments> attention() {
    return Stream.of(
        bad("rope of too few positions", c -> c.rope(f32(c, 4, 1, 3), ids(c, 2), ROPE), "[3]"),
        bad("rope by floats", c -> c.rope(f32(c, 4, 1, 3), f32(c, 3), ROPE), "I32"),
        bad("rope of short rows", c -> c.rope(f32(c, 2, 1, 3), ids(c, 3), ROPE), "not 4"),
        bad(
            "rope of odd dims",
            c -> c.rope(f32(c, 4, 1, 3), ids(c, 3), RopeParams.of(3, RopeMode.NEOX, 1e4f)),
            "not 3"),
        bad(
            "rope with too few factors",
            c -> c.rope(f32(c, 4, 1, 3), ids(c, 3), f32(c, 1), ROPE),
            "factors"),
        bad("attention of other rows", c -> flash(c, f32(c, 8, 2), f32(c, 4, 2)), "length"),
        bad("attention of F16 queries", c -> flash(c, of(c, Type.F16, 4, 2), f32(c, 4, 2)), "F16"),
        bad("attention of 3 heads by 2", c -> flash(c, f32(c, 4, 2, 3), f32(c, 4, 2, 2)), "heads"),
        bad(
            "attention with a float mask",
            c -> c.flashAttnExt(f32(c, 4, 2), f32(c, 4, 2), f32(c, 4, 2), f32(c, 2, 2), 1, 0, 0),
            "F16"));
  }

  private static Tensor ids(Context c, long... ne) {
    return of(c, Type.I32, ne);
  }

  private static Tensor flash(Context c, Tensor q, Tensor k) {
    return c.flashAttnExt(q, k, k, null, 1, 0, 0);
  }

  private static Arguments bad(String name, Consumer<Context> mistake, String message) {
    return Arguments.of(name, mistake, message);
  }

  @ParameterizedTest(name = "JAVA-2: {0} is refused")
  @MethodSource("mistakes")
  void mistakeIsRefused(String name, Consumer<Context> mistake, String message) {
    assertThatThrownBy(() -> mistake.accept(context))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
    assertThat(context.tensors()).allMatch(tensor -> !isResult(tensor));
  }

  /** Sources and views of them are there; what was refused is not. */
  private static boolean isResult(Tensor tensor) {
    String op = tensor.op();
    return !op.equals("NONE") && !op.equals("PERMUTE");
  }
}
