package org.ggmlext.internal.load;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.nio.charset.StandardCharsets.UTF_16LE;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.ggmlext.internal.Native;

/**
 * The loader of Windows. Asked by Java, it does not look beside a library for what that library
 * needs; what is loaded already, it finds by its name.
 */
final class WindowsLoader {
  private static final int LOAD_WITH_ALTERED_SEARCH_PATH = 8;
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final int ERROR_MOD_NOT_FOUND = 126;
  private static final int ERROR_BAD_EXE_FORMAT = 193;

  private WindowsLoader() {}

  /**
   * Loads a library and what it needs for the life of the process.
   *
   * @return why that fails; "" if it does not
   */
  static String load(Path library) {
    Linker linker = Linker.nativeLinker();
    Linker.Option lastError = Linker.Option.captureCallState("GetLastError");
    MethodHandle load =
        linker.downcallHandle(
            SymbolLookup.libraryLookup("kernel32", Arena.global()).findOrThrow("LoadLibraryExW"),
            FunctionDescriptor.of(ADDRESS, ADDRESS, ADDRESS, JAVA_INT),
            lastError);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment error = arena.allocate(STATE);
      MemorySegment path = arena.allocateFrom(library.toAbsolutePath().toString(), UTF_16LE);
      MemorySegment handle =
          (MemorySegment)
              load.invokeExact(error, path, MemorySegment.NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
      return Native.isNull(handle)
          ? reason(error.get(JAVA_INT, STATE.byteOffset(groupElement("GetLastError"))))
          : "";
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }

  /** In words for what happens most. */
  static String reason(int error) {
    String words =
        switch (error) {
          case ERROR_MOD_NOT_FOUND -> "it, or a library that it needs, is not there";
          case ERROR_BAD_EXE_FORMAT -> "it, or a library that it needs, is none for this processor";
          default -> "the system's loader refuses it";
        };
    return words + " (Windows error " + error + ")";
  }
}
