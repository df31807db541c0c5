package org.ggmlext.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * C's own memory, for what ggml would end the process over if it could not have it, and for what
 * would pay for Java's zeroing.
 */
public final class Malloc {
  private static final MethodHandle MALLOC =
      handle("malloc", FunctionDescriptor.of(ADDRESS, JAVA_LONG));
  private static final MethodHandle FREE = handle("free", FunctionDescriptor.ofVoid(ADDRESS));

  private Malloc() {}

  private static MethodHandle handle(String name, FunctionDescriptor descriptor) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
  }

  /** Memory aligned to 16 bytes; null if there is none. */
  public static MemorySegment malloc(long bytes) {
    try {
      return (MemorySegment) MALLOC.invokeExact(bytes);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }

  /** Frees memory of {@link #malloc}. */
  public static void free(MemorySegment memory) {
    try {
      FREE.invokeExact(memory);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }
}
