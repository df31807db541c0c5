package org.ggmlext.ext.ops;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.Shape;
import org.ggmlext.StoredTensor;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.bindings.ggml_h;
import org.jspecify.annotations.Nullable;

/**
 * The INT8 layers of a safetensors file, stored as ComfyUI stores its format {@code
 * int8_tensorwise}. A layer {@code m} of K inputs and N outputs has, the shapes as the file writes
 * them:
 *
 * <ul>
 *   <li>{@code m.weight}, I8 [N, K];
 *   <li>{@code m.weight_scale}, F32 [N], [N, 1], or [1] or [] for all outputs;
 *   <li>{@code m.bias} where there is one, F32, F16 or BF16 [N];
 *   <li>{@code m.comfy_quant}, the bytes of a JSON object: {@code format}; {@code convrot}, whether
 *       the weights were rotated (false where it is missing); {@code convrot_groupsize}, in groups
 *       of how many features (256 where it is missing). Other keys are not looked at.
 * </ul>
 *
 * <p>Layers of other formats are none of these. Safe for use by several threads while the file is
 * open.
 */
public final class Int8Checkpoint {
  /** The format that is understood. */
  public static final String FORMAT = "int8_tensorwise";

  private static final String MARK = ".comfy_quant";
  private static final int MAX_TEXT = 1 << 16;
  private static final int MAX_K = 131071;
  private static final String DEFAULT_GROUP = "256";
  private static final Set<String> GROUPS = Set.of("1", "4", "16", "64", "256");
  private static final JsonFactory JSON = new JsonFactory();

  private final Safetensors file;
  private final Map<String, Stored> layers = new LinkedHashMap<>();

  /** What the text of a layer says; the group is 1 where nothing was rotated. */
  private record Settings(String format, int group) {}

  private record Stored(
      StoredTensor weight, StoredTensor scale, @Nullable StoredTensor bias, int group) {}

  private Int8Checkpoint(Safetensors file) {
    this.file = file;
  }

  /**
   * Looks for the layers and checks them.
   *
   * @param file stays open as long as layers are loaded
   * @throws GgmlException if a layer is malformed: a text that is no such JSON, a tensor that is
   *     missing or of another type or shape, a group that does not divide K; the message names it
   */
  public static Int8Checkpoint of(Safetensors file) {
    Int8Checkpoint checkpoint = new Int8Checkpoint(file);
    for (StoredTensor tensor : file.tensors()) {
      if (tensor.name().endsWith(MARK)) {
        String module = tensor.name().substring(0, tensor.name().length() - MARK.length());
        Settings settings = checkpoint.settings(tensor);
        if (settings.format().equals(FORMAT)) {
          checkpoint.layers.put(module, checkpoint.check(module, settings));
        }
      }
    }
    return checkpoint;
  }

  /** The names of the layers, in the file's order. */
  public Set<String> layers() {
    return Collections.unmodifiableSet(layers.keySet());
  }

  /**
   * Makes the tensors of a layer, without data. Give them memory ({@link Context#allocate}), then
   * call {@link #load}.
   *
   * @param weights where they are made, two tensors or, with a bias, three
   * @throws IllegalArgumentException if there is no such layer
   * @throws GgmlException if the context has no room for all of them; none is made then, unless
   *     other threads fill it meanwhile
   */
  public Int8Layer newLayer(Context weights, String module) {
    Stored stored = stored(module);
    long needed = (stored.bias() == null ? 2 : 3) * ggml_h.ggml_tensor_overhead();
    long free = weights.freeBytes();
    if (free < needed) {
      throw new GgmlException(
          "the context is full: the tensors of \"%s\" need %d bytes, %d are free"
              .formatted(module, needed, free));
    }
    LinearI8 linear =
        LinearI8.of(file.newTensor(weights, stored.weight().name()))
            .withWeightScale(file.newTensor(weights, stored.scale().name()));
    StoredTensor bias = stored.bias();
    if (bias != null) {
      linear = linear.withBias(weights.newTensor(Type.F32, bias.shape()));
    }
    return new Int8Layer(linear, stored.group());
  }

  /**
   * Reads the data of a layer. All is checked before anything is written.
   *
   * @param layer what {@link #newLayer} made for this name, or one with the same group, types,
   *     shapes and, or no, bias
   * @throws IllegalArgumentException if there is no such layer, or this is another
   * @throws IllegalStateException if the file is closed, or the tensors have no memory
   * @throws GgmlException if the data cannot be read any more, since the file was cut short after
   *     it was opened; the tensors hold a part of them then
   */
  public void load(String module, Int8Layer layer) {
    Stored stored = stored(module);
    Tensor weight = layer.linear().weight();
    Tensor scale = layer.linear().weightScale();
    Tensor bias = layer.linear().bias();
    if (layer.group() != stored.group()
        || !fits(stored.weight(), Type.I8, weight)
        || !fits(stored.scale(), Type.F32, scale)
        || !fits(stored.bias(), Type.F32, bias)) {
      throw new IllegalArgumentException(
          "\"%s\" is another layer than %s: group %d, weight %s, scale %s, bias %s, all contiguous"
              .formatted(
                  module,
                  layer,
                  stored.group(),
                  stored.weight().shape(),
                  stored.scale().shape(),
                  stored.bias() == null ? "none" : stored.bias().shape()));
    }
    for (Tensor tensor : Arrays.asList(weight, scale, bias)) {
      if (tensor != null && !tensor.isAllocated()) {
        throw new IllegalStateException(
            "a tensor %s of the layer \"%s\" has no memory: allocate its context first"
                .formatted(tensor, module));
      }
    }
    float[] biases = stored.bias() == null ? null : file.floats(stored.bias().name());
    file.load(stored.weight().name(), weight);
    if (scale != null) {
      file.load(stored.scale().name(), scale);
    }
    if (bias != null && biases != null) {
      bias.setFloats(biases);
    }
  }

  private static boolean fits(@Nullable StoredTensor stored, Type type, @Nullable Tensor tensor) {
    if (stored == null || tensor == null) {
      return stored == null && tensor == null;
    }
    return tensor.type() == type && tensor.shape().equals(stored.shape()) && tensor.isContiguous();
  }

  private Stored stored(String module) {
    Stored stored = layers.get(module);
    if (stored == null) {
      throw new IllegalArgumentException(
          file.path() + " has no layer \"" + module + "\" of the format " + FORMAT);
    }
    return stored;
  }

  private Stored check(String module, Settings settings) {
    StoredTensor weight = required(module + ".weight");
    Shape shape = weight.shape();
    if (!weight.dtype().equals("I8") || shape.rows() != shape.ne1()) {
      throw bad(weight, "expected an I8 matrix");
    }
    long k = shape.ne0();
    long n = shape.ne1();
    if (k < 1 || n < 1 || k > MAX_K) {
      throw bad(weight, "expected 1 to %d features".formatted(MAX_K));
    }
    int group = settings.group();
    if (k % group != 0) {
      throw bad(weight, "expected a multiple of the group %d as features".formatted(group));
    }
    StoredTensor scale = required(module + ".weight_scale");
    boolean one = scale.shape().elements() == 1;
    boolean each = scale.shape().equals(Shape.of(n)) || scale.shape().equals(Shape.of(1, n));
    if (scale.type() != Type.F32 || !(one || each)) {
      throw bad(scale, "expected F32 [%d], [1, %d] or [1]".formatted(n, n));
    }
    StoredTensor bias = file.contains(module + ".bias") ? file.tensor(module + ".bias") : null;
    if (bias != null
        && (!bias.shape().equals(Shape.of(n))
            || !(bias.type() == Type.F32 || bias.type() == Type.F16 || bias.type() == Type.BF16))) {
      throw bad(bias, "expected F32, F16 or BF16 [%d]".formatted(n));
    }
    return new Stored(weight, scale, bias, group);
  }

  private StoredTensor required(String name) {
    if (!file.contains(name)) {
      throw new GgmlException(
          "%s: the tensor \"%s\" is missing, which a layer of the format %s has"
              .formatted(file.path(), name, FORMAT));
    }
    return file.tensor(name);
  }

  private GgmlException bad(StoredTensor tensor, String expected) {
    return new GgmlException(
        "%s: \"%s\" is %s %s (the fastest dimension first), %s"
            .formatted(file.path(), tensor.name(), tensor.dtype(), tensor.shape(), expected));
  }

  private Settings settings(StoredTensor tensor) {
    if (tensor.type() != Type.I8 || tensor.byteSize() > MAX_TEXT) {
      throw bad(tensor, "expected the bytes of a JSON object, at most " + MAX_TEXT);
    }
    String format = "";
    boolean rotated = false;
    String group = DEFAULT_GROUP;
    byte[] text = file.getBytes(tensor.name());
    try (JsonParser json = JSON.createParser(text)) {
      expect(tensor, json.nextToken(), JsonToken.START_OBJECT, "the text");
      while (json.nextToken() != JsonToken.END_OBJECT) {
        String key = json.currentName();
        JsonToken value = json.nextToken();
        switch (key) {
          case "format" -> {
            expect(tensor, value, JsonToken.VALUE_STRING, key);
            format = json.getText();
          }
          case "convrot" -> {
            if (value != JsonToken.VALUE_FALSE) {
              expect(tensor, value, JsonToken.VALUE_TRUE, key);
            }
            rotated = value == JsonToken.VALUE_TRUE;
          }
          case "convrot_groupsize" -> {
            expect(tensor, value, JsonToken.VALUE_NUMBER_INT, key);
            group = json.getText();
          }
          default -> json.skipChildren();
        }
      }
      if (json.nextToken() != null) {
        throw bad(tensor, "expected nothing after its JSON object");
      }
    } catch (IOException e) {
      throw new GgmlException(
          "%s: \"%s\" is no JSON: %s".formatted(file.path(), tensor.name(), e.getMessage()), e);
    }
    if (!format.equals(FORMAT) || !rotated) {
      return new Settings(format, 1);
    }
    if (!GROUPS.contains(group)) {
      throw bad(tensor, "convrot_groupsize %s, expected 1, 4, 16, 64 or 256".formatted(group));
    }
    return new Settings(format, Integer.parseInt(group));
  }

  private void expect(
      StoredTensor tensor, @Nullable JsonToken token, JsonToken expected, String what) {
    if (token != expected) {
      throw bad(tensor, "%s: %s expected, %s found".formatted(what, expected, token));
    }
  }
}
