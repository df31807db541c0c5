package org.ggmlext;

/** The types of values in the metadata of a GGUF file. */
public enum GgufType {
  UINT8(1),
  INT8(1),
  UINT16(2),
  INT16(2),
  UINT32(4),
  INT32(4),
  FLOAT32(4),
  BOOL(1),
  STRING(0),
  ARRAY(0),
  UINT64(8),
  INT64(8),
  FLOAT64(8);

  private final int byteSize;

  GgufType(int byteSize) {
    this.byteSize = byteSize;
  }

  /** Bytes of a value; 0 for strings and arrays, which vary. */
  int byteSize() {
    return byteSize;
  }

  /** The value of this type in a file. */
  public int value() {
    return ordinal();
  }
}
