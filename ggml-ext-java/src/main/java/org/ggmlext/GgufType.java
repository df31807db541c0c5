package org.ggmlext;

import java.util.List;

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

  /** What holds a value of this type in Java. */
  Class<?> valueClass() {
    return switch (this) {
      case UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64 -> Long.class;
      case FLOAT32 -> Float.class;
      case FLOAT64 -> Double.class;
      case BOOL -> Boolean.class;
      case STRING -> String.class;
      case ARRAY -> List.class;
    };
  }

  /** The value of this type in a file. */
  public int value() {
    return ordinal();
  }
}
