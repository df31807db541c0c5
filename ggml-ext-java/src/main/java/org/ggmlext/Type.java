package org.ggmlext;

/**
 * The element types of ggml. Quantised types store blocks of several elements; their sizes are
 * those of one block.
 */
public enum Type {
  F32(0, 1, 4),
  F16(1, 1, 2),
  Q4_0(2, 32, 18),
  Q4_1(3, 32, 20),
  Q5_0(6, 32, 22),
  Q5_1(7, 32, 24),
  Q8_0(8, 32, 34),
  Q8_1(9, 32, 36),
  Q2_K(10, 256, 84),
  Q3_K(11, 256, 110),
  Q4_K(12, 256, 144),
  Q5_K(13, 256, 176),
  Q6_K(14, 256, 210),
  Q8_K(15, 256, 292),
  IQ2_XXS(16, 256, 66),
  IQ2_XS(17, 256, 74),
  IQ3_XXS(18, 256, 98),
  IQ1_S(19, 256, 50),
  IQ4_NL(20, 32, 18),
  IQ3_S(21, 256, 110),
  IQ2_S(22, 256, 82),
  IQ4_XS(23, 256, 136),
  I8(24, 1, 1),
  I16(25, 1, 2),
  I32(26, 1, 4),
  I64(27, 1, 8),
  F64(28, 1, 8),
  IQ1_M(29, 256, 56),
  BF16(30, 1, 2),
  TQ1_0(34, 256, 54),
  TQ2_0(35, 256, 66),
  MXFP4(39, 32, 17),
  NVFP4(40, 64, 36),
  Q1_0(41, 128, 18),
  Q2_0(42, 64, 18);

  private static final Type[] BY_VALUE = new Type[43];

  static {
    for (Type type : values()) {
      BY_VALUE[type.value] = type;
    }
  }

  private final int value;
  private final int blockSize;
  private final int byteSize;

  Type(int value, int blockSize, int byteSize) {
    this.value = value;
    this.blockSize = blockSize;
    this.byteSize = byteSize;
  }

  /** The value of this type in ggml's {@code enum ggml_type}. */
  public int value() {
    return value;
  }

  /** Elements of one block; 1 for types that are not quantised. */
  public int blockSize() {
    return blockSize;
  }

  /** Bytes of one block; for types that are not quantised, of one element. */
  public int byteSize() {
    return byteSize;
  }

  /** Whether elements are stored in blocks. */
  public boolean isQuantized() {
    return blockSize > 1;
  }

  /**
   * Bytes of a row of so many elements.
   *
   * @throws IllegalArgumentException if the elements are not a whole number of blocks
   */
  public long rowSize(long elements) {
    if (elements % blockSize != 0) {
      throw new IllegalArgumentException(
          "a row of %d elements is no whole number of %s blocks of %d"
              .formatted(elements, this, blockSize));
    }
    return Math.multiplyExact(elements / blockSize, (long) byteSize);
  }

  /**
   * The type with this value in {@code enum ggml_type}.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static Type of(int value) {
    if (value < 0 || value >= BY_VALUE.length || BY_VALUE[value] == null) {
      throw new IllegalArgumentException("no ggml type has the value " + value);
    }
    return BY_VALUE[value];
  }
}
