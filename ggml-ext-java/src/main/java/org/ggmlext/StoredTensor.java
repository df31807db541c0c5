package org.ggmlext;

import java.util.List;

/**
 * A tensor in a model file.
 *
 * @param name its name
 * @param type its type; where ggml does not have the file's one, the integer of its size: I8 for
 *     U8, BOOL and floats of 8 bits, I16 to I64 for U16 to U64, I64 for complex numbers; elements
 *     of less than 8 bits are bytes, I8
 * @param dtype what the file calls its type
 * @param shape its shape in ggml, the fastest dimension first; more than four dimensions have the
 *     slowest ones as one, elements of less than 8 bits are their bytes in one row
 * @param sizes the file's own sizes with the slowest dimension first, as safetensors files write
 *     them: as many as the file has, leading ones too, none for a single value
 * @param offset bytes from the begin of the file's data to the tensor's
 * @param byteSize bytes of the tensor
 */
public record StoredTensor(
    String name,
    Type type,
    String dtype,
    Shape shape,
    List<Long> sizes,
    long offset,
    long byteSize) {
  public StoredTensor {
    sizes = List.copyOf(sizes);
  }
}
