package org.ggmlext.internal.callback;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Reads fields of C structs at known addresses. Callers vouch for the address. */
public final class Raw {
  private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private Raw() {}

  /** A segment of exactly this address and size. */
  public static MemorySegment segment(long address, long size) {
    return MemorySegment.ofAddress(address).reinterpret(size);
  }

  public static int getInt(long address) {
    return ALL.get(ValueLayout.JAVA_INT_UNALIGNED, address);
  }

  public static long getLong(long address) {
    return ALL.get(ValueLayout.JAVA_LONG, address);
  }

  public static void putInt(long address, int value) {
    ALL.set(ValueLayout.JAVA_INT, address, value);
  }

  public static void putLong(long address, long value) {
    ALL.set(ValueLayout.JAVA_LONG, address, value);
  }

  /** The zero-terminated UTF-8 string at this address, "" for NULL. */
  public static String getString(long address) {
    return address == 0 ? "" : ALL.getString(address);
  }

  /** Copies bytes into a new array. */
  public static byte[] getBytes(long address, long size) {
    return ALL.asSlice(address, size).toArray(ValueLayout.JAVA_BYTE);
  }
}
