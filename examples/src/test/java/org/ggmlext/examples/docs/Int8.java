package org.ggmlext.examples.docs;

import java.nio.file.Path;
import org.ggmlext.Context;
import org.ggmlext.Device;
import org.ggmlext.Safetensors;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.KernelLibrary;
import org.ggmlext.ext.LibraryRegistration;
import org.ggmlext.ext.ops.Int8Checkpoint;
import org.ggmlext.ext.ops.Int8Layer;
import org.ggmlext.ext.ops.QuantizeI8ConvRot;

/** What the page about INT8 shows; SnippetsTest runs it. */
final class Int8 {
  private Int8() {}

  static LibraryRegistration register(Extensions extensions, Device cpu) {
    // docs: int8-register
    LibraryRegistration kernels = extensions.register(cpu, KernelLibrary.bundled("cpu"));
    // docs: end
    return kernels;
  }

  static Tensor layer(Path path, Context weights, Context nodes, Device cpu, Tensor x) {
    // docs: int8-layer
    Int8Layer query;
    try (Safetensors file = Safetensors.open(path)) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      query = checkpoint.newLayer(weights, "attention.query");
      weights.allocate(cpu).asWeights();
      checkpoint.load("attention.query", query);
    }
    Tensor y = query.apply(nodes, x);
    // docs: end
    return y;
  }

  static Tensor[] shared(Context nodes, Tensor x, Int8Layer query, Int8Layer key) {
    // docs: int8-shared
    Tensor packed = QuantizeI8ConvRot.create(nodes, x, query.group());
    Tensor q = query.apply(nodes, packed, x);
    Tensor k = key.apply(nodes, packed, x);
    // docs: end
    return new Tensor[] {q, k};
  }
}
