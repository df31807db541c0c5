package org.ggmlext.examples.int8;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
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
 * divides them. Everything else is copied. Embeddings are matrices too, so LAYERS must not match
 * them.
 */
public final class ConvertToInt8 {
  private static final String USAGE =
      "usage: ConvertToInt8 IN.safetensors OUT.safetensors LAYERS [GROUP]\n"
          + "LAYERS is a regular expression, such as \"blocks\\..*\"; GROUP is 1, 4, 16, 64 or 256";
  private static final String WEIGHT = ".weight";
  private static final int DEFAULT_GROUP = 256;

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
   * @param out another file
   * @param layers matches the names of the layers that become INT8
   * @param limit the largest group of features to rotate: 1, 4, 16, 64 or 256
   * @return how many layers were converted
   * @throws GgmlException if a file cannot be read or written
   * @throws IllegalArgumentException if nothing matches, the output is the input, there is no such
   *     group, or a weight is not finite
   */
  public static int convert(Path in, Path out, Pattern layers, int limit) {
    if (in.toAbsolutePath().normalize().equals(out.toAbsolutePath().normalize())) {
      throw new IllegalArgumentException(out + " is the input, too");
    }
    if (limit != QuantizedRows.group(256, limit)) {
      throw new IllegalArgumentException(
          "the group is " + limit + ", expected 1, 4, 16, 64 or 256");
    }
    Int8CheckpointWriter writer = new Int8CheckpointWriter();
    try (Safetensors file = Safetensors.open(in)) {
      for (StoredTensor tensor : file.tensors()) {
        MemorySegment data = file.data(tensor.name());
        if (isLayer(tensor, layers)) {
          String module = moduleOf(tensor);
          try {
            int features = Math.toIntExact(tensor.shape().ne0());
            writer.addLayer(module, floats(tensor, data), features, limit);
          } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(tensor.name() + ": " + e.getMessage(), e);
          }
        } else {
          writer.add(tensor, data);
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

  private static boolean isLayer(StoredTensor tensor, Pattern layers) {
    Type type = tensor.type();
    return tensor.name().endsWith(WEIGHT)
        && (type == Type.F32 || type == Type.F16 || type == Type.BF16)
        && tensor.shape().dims() == 2
        && layers.matcher(moduleOf(tensor)).matches();
  }

  private static String moduleOf(StoredTensor weight) {
    return weight.name().substring(0, weight.name().length() - WEIGHT.length());
  }

  private static float[] floats(StoredTensor tensor, MemorySegment data) {
    ValueLayout.OfShort half = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    ValueLayout.OfFloat single =
        ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    float[] values = new float[Math.toIntExact(tensor.shape().elements())];
    for (int i = 0; i < values.length; i++) {
      values[i] =
          switch (tensor.type()) {
            case F16 -> Float.float16ToFloat(data.getAtIndex(half, i));
            case BF16 -> Float.intBitsToFloat(data.getAtIndex(half, i) << 16);
            default -> data.getAtIndex(single, i);
          };
    }
    return values;
  }
}
