package org.ggmlext.examples.int8;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.Shape;
import org.ggmlext.StoredTensor;
import org.ggmlext.Type;
import org.ggmlext.ext.ops.Int8Checkpoint;

/** Writes a safetensors file that {@link Int8Checkpoint} reads, and ComfyUI too. */
public final class Int8CheckpointWriter {
  private final SafetensorsWriter file = new SafetensorsWriter().metadata("format", "pt");
  private int layers;

  /**
   * Sets what the file says about itself; {@code format} is {@code pt} where nothing else is said.
   *
   * @return this
   */
  public Int8CheckpointWriter metadata(String key, String value) {
    file.metadata(key, value);
    return this;
  }

  /**
   * Adds a linear layer's weights, quantised, as [N, K] with scales [N, 1]. Its bias is added as
   * any other tensor, as {@code module.bias}.
   *
   * @param module the layer's name
   * @param rows one row an output
   * @param features values of a row
   * @param limit the largest group of features to rotate; a smaller one where it does not divide
   * @return this
   */
  public Int8CheckpointWriter addLayer(String module, float[] rows, int features, int limit) {
    int group = QuantizedRows.group(features, limit);
    QuantizedRows quantized = QuantizedRows.of(rows, features, group);
    long outputs = quantized.scales().length;
    String text =
        group == 1
            ? "{\"format\": \"%s\", \"convrot\": false}".formatted(Int8Checkpoint.FORMAT)
            : "{\"format\": \"%s\", \"convrot\": true, \"convrot_groupsize\": %d}"
                .formatted(Int8Checkpoint.FORMAT, group);
    file.add(
        module + ".weight",
        "I8",
        List.of(outputs, (long) features),
        MemorySegment.ofArray(quantized.values()));
    file.add(
        module + ".weight_scale",
        "F32",
        List.of(outputs, 1L),
        MemorySegment.ofArray(quantized.scales()));
    file.add(module + ".comfy_quant", text.getBytes(StandardCharsets.UTF_8));
    layers++;
    return this;
  }

  /**
   * Adds a tensor of another file as it is there.
   *
   * @param data its bytes, which stay as they are until {@link #write}
   * @return this
   */
  public Int8CheckpointWriter add(StoredTensor tensor, MemorySegment data) {
    file.add(tensor, data);
    return this;
  }

  /**
   * Adds F32 values as they are.
   *
   * @return this
   */
  public Int8CheckpointWriter add(String name, Shape shape, float[] values) {
    file.add(name, Type.F32, shape, MemorySegment.ofArray(values));
    return this;
  }

  /** How many layers there are. */
  public int layers() {
    return layers;
  }

  /** Writes the file as {@link SafetensorsWriter#write} does, in place of one that is there. */
  public void write(Path path) {
    file.write(path);
  }
}
