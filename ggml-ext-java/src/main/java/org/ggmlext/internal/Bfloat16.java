package org.ggmlext.internal;

/** The upper half of a float, rounded to nearest even. */
public final class Bfloat16 {
  private Bfloat16() {}

  /** Rounds a float; NaN stays a (quiet) NaN. */
  public static short of(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >> 16) | 0x40);
    }
    return (short) ((bits + (0x7fff + ((bits >> 16) & 1))) >> 16);
  }

  /** The float that this is. */
  public static float toFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }
}
