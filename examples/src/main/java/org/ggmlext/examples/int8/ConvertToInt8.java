package org.ggmlext.examples.int8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.StoredTensor;
import org.ggmlext.Type;

/**
 * Converts the linear layers of a safetensors file to INT8.
 *
 * <pre>{@code
 * ConvertToInt8 IN.safetensors OUT.safetensors LAYERS [GROUP]
 * }</pre>
 *
 * Each F32, F16 or BF16 matrix {@code m.weight} whose {@code m} the regular expression LAYERS
 * matches becomes a layer of the format that {@link org.ggmlext.ext.ops.Int8Checkpoint} describes,
 * rotated in groups of GROUP features (256 where it is not given), or of the next smaller size that
 * divides them. Everything else is copied: other tensors with their types, shapes and bytes, and
 * the metadata; their order may change. Embeddings are matrices too, so LAYERS must not match them.
 */
public final class ConvertToInt8 {
  private static final String USAGE =
      "usage: ConvertToInt8 IN.safetensors OUT.safetensors LAYERS [GROUP]\n"
          + "LAYERS is a regular expression, such as \"blocks\\..*\"; GROUP is 1, 4, 16, 64 or 256";
  private static final String WEIGHT = ".weight";
  private static final int DEFAULT_GROUP = 256;
  private static final int MAX_FEATURES = 131071;

  private ConvertToInt8() {}

  /**
   * @param args input, output, layers, group
   */
  public static void main(String[] args) {
    if (args.length < 3 || args.length > 4) {
      System.err.println(USAGE);
      System.exit(2);
    }
    try {
      int group = args.length == 4 ? Integer.parseInt(args[3]) : DEFAULT_GROUP;
      int layers = convert(Path.of(args[0]), Path.of(args[1]), Pattern.compile(args[2]), group);
      System.out.println(layers + " layers converted");
    } catch (NumberFormatException | PatternSyntaxException e) {
      System.err.println("ConvertToInt8: " + e.getMessage() + "\n" + USAGE);
      System.exit(2);
    } catch (GgmlException | IllegalArgumentException e) {
      System.err.println("ConvertToInt8: " + e.getMessage());
      System.exit(1);
    }
  }

  /**
   * Converts a file.
   *
   * @param in is not changed
   * @param out another file, replaced as a whole if it is there, or left as it is if this fails
   * @param layers matches the names of the layers that become INT8
   * @param limit the largest group of features to rotate: 1, 4, 16, 64 or 256
   * @return how many layers were converted
   * @throws GgmlException if a file cannot be read or written
   * @throws IllegalArgumentException if nothing matches, the output is the input (by another name
   *     or link, too), there is no such group, a weight is not finite, or a layer has more than
   *     131,071 features or more values than a Java array can have
   */
  public static int convert(Path in, Path out, Pattern layers, int limit) {
    if (isSame(in, out)) {
      throw new IllegalArgumentException(out + " is the input, too");
    }
    if (limit != QuantizedRows.group(256, limit)) {
      throw new IllegalArgumentException(
          "the group is " + limit + ", expected 1, 4, 16, 64 or 256");
    }
    Int8CheckpointWriter writer = new Int8CheckpointWriter();
    try (Safetensors file = Safetensors.open(in)) {
      file.metadata().forEach(writer::metadata);
      for (StoredTensor tensor : file.tensors()) {
        if (isLayer(tensor, layers)) {
          addLayer(writer, file, tensor, limit);
        } else {
          writer.add(tensor, file.data(tensor.name()));
        }
      }
      if (writer.layers() == 0) {
        throw new IllegalArgumentException(
            in + " has no F32, F16 or BF16 matrix \"m.weight\" with m as " + layers);
      }
      writer.write(out);
    }
    return writer.layers();
  }

  private static boolean isSame(Path in, Path out) {
    try {
      return Files.exists(out) && Files.isSameFile(in, out);
    } catch (IOException e) {
      throw new GgmlException("cannot read " + in + ": " + e, e);
    }
  }

  private static boolean isLayer(StoredTensor tensor, Pattern layers) {
    Type type = tensor.type();
    return tensor.name().endsWith(WEIGHT)
        && (type == Type.F32 || type == Type.F16 || type == Type.BF16)
        && tensor.sizes().size() == 2
        && tensor.byteSize() > 0
        && layers.matcher(moduleOf(tensor)).matches();
  }

  private static void addLayer(
      Int8CheckpointWriter writer, Safetensors file, StoredTensor weight, int limit) {
    long features = weight.shape().ne0();
    if (features > MAX_FEATURES) {
      throw new IllegalArgumentException(
          "%s: %d features, a layer in INT8 has at most %d"
              .formatted(weight.name(), features, MAX_FEATURES));
    }
    float[] rows = file.floats(weight.name());
    try {
      writer.addLayer(moduleOf(weight), rows, (int) features, limit);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(weight.name() + ": " + e.getMessage(), e);
    }
  }

  private static String moduleOf(StoredTensor weight) {
    return weight.name().substring(0, weight.name().length() - WEIGHT.length());
  }
}
