package org.ggmlext;

/**
 * A tensor in a model file.
 *
 * @param name its name
 * @param type its type
 * @param dtype what the file calls its type; U8 and BOOL, which ggml does not have, are I8 here
 * @param shape its shape, the fastest dimension first
 * @param offset bytes from the begin of the file's data to the tensor's
 * @param byteSize bytes of the tensor
 */
public record StoredTensor(
    String name, Type type, String dtype, Shape shape, long offset, long byteSize) {}
