package org.ggmlext.examples.docs;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.GgufFile;
import org.ggmlext.GgufValue;
import org.ggmlext.GgufWriter;
import org.ggmlext.Safetensors;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.Shape;
import org.ggmlext.StoredTensor;
import org.ggmlext.Tensor;
import org.ggmlext.Type;

/** What docs/model-files.md shows; SnippetsTest runs it. */
final class ModelFiles {
  private ModelFiles() {}

  static void writeGguf(Path path, Tensor weight, float[] bias) {
    // docs: write GGUF
    new GgufWriter()
        .set("general.architecture", "app")
        .set("app.layers", GgufValue.uint32(2))
        .add("blk.0.weight", weight) // a copy of its data
        .add("blk.0.bias", Type.F32, Shape.of(bias.length), MemorySegment.ofArray(bias))
        .write(path);
    // docs: end
  }

  static long layers(Path path) {
    // docs: read GGUF
    try (GgufFile file = GgufFile.open(path)) {
      for (StoredTensor stored : file.tensors()) {
        System.out.println(stored.name() + " " + stored.type() + " " + stored.shape());
      }
      return file.integer("app.layers").orElseThrow();
    }
    // docs: end
  }

  // docs: load all
  /** All tensors of a file, on a device. They live as long as the context does. */
  static Map<String, Tensor> load(GgufFile file, Context weights, Device device) {
    Map<String, Tensor> tensors = new LinkedHashMap<>();
    for (StoredTensor stored : file.tensors()) {
      tensors.put(stored.name(), file.newTensor(weights, stored.name()));
    }
    weights.allocate(device).asWeights();
    tensors.forEach(file::load);
    return tensors;
  }

  // docs: end

  static void writeSafetensors(Path path, Tensor weight, float[] bias) {
    // docs: write safetensors
    new SafetensorsWriter()
        .metadata("format", "pt")
        .add("layer.weight", weight)
        .add("layer.bias", Type.F32, Shape.of(bias.length), MemorySegment.ofArray(bias))
        .write(path);
    // docs: end
  }

  static float[] readSafetensors(Path path, Context weights, Device device) {
    // docs: read safetensors
    try (Safetensors file = Safetensors.open(path)) {
      Tensor weight = file.newTensor(weights, "layer.weight"); // as the file has it
      weights.allocate(device).asWeights();
      file.load("layer.weight", weight);
      return file.floats("layer.bias"); // without a tensor; F32, F16 or BF16
    }
    // docs: end
  }
}
