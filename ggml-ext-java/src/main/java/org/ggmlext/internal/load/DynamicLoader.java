package org.ggmlext.internal.load;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.ggmlext.GgmlException;
import org.ggmlext.internal.Native;
import org.ggmlext.natives.LibraryFormat;

/** Loads shared libraries for the life of the process. */
public final class DynamicLoader {
  private static final boolean WINDOWS = LibraryFormat.current() == LibraryFormat.PE;
  private static final int RTLD_LAZY = 1;
  private static final int RTLD_NOW = 2;

  private DynamicLoader() {}

  /**
   * Loads a library.
   *
   * @param library a path, or a name for the system's search
   * @throws GgmlException with the loader's own words if that fails
   */
  public static SymbolLookup load(String library) {
    Path path = Path.of(library);
    boolean named = path.getParent() == null;
    if (WINDOWS && !named) {
      check(library, WindowsLoader.load(path));
    }
    try {
      return named
          ? SymbolLookup.libraryLookup(library, Arena.global())
          : SymbolLookup.libraryLookup(path, Arena.global());
    } catch (IllegalArgumentException e) {
      throw new GgmlException("cannot load " + library + ": " + reason(library), e);
    }
  }

  /**
   * Loads a library written by others. Java binds functions when they are called first, and a
   * process that calls one that is not there ends; so all of them are bound here.
   *
   * @throws GgmlException with the loader's own words if that fails
   */
  public static SymbolLookup loadBound(String library) {
    if (!WINDOWS) { // which binds all of them always
      check(library, reason(library, RTLD_NOW));
    }
    return load(library);
  }

  private static void check(String library, String reason) {
    if (!reason.isEmpty()) {
      throw new GgmlException("cannot load " + library + ": " + reason);
    }
  }

  private static String reason(String library) {
    String reason = reason(library, RTLD_LAZY);
    return reason.isEmpty() ? "the system's loader accepts it, Java does not" : reason;
  }

  /** Why the loader refuses a library, "" if it does not: Java's own message leaves that out. */
  private static String reason(String library, int flags) {
    Linker linker = Linker.nativeLinker();
    SymbolLookup libc = linker.defaultLookup();
    var dlopen = libc.find("dlopen");
    var dlerror = libc.find("dlerror");
    if (dlopen.isEmpty() || dlerror.isEmpty()) {
      return flags == RTLD_NOW ? "" : "the system's loader refuses it";
    }
    MethodHandle open =
        linker.downcallHandle(dlopen.get(), FunctionDescriptor.of(ADDRESS, ADDRESS, JAVA_INT));
    MethodHandle error = linker.downcallHandle(dlerror.get(), FunctionDescriptor.of(ADDRESS));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment path = arena.allocateFrom(library);
      // Twice: the VM's own look-ups for first calls would take the message away.
      String message = "";
      for (int i = 0; i < 2; i++) {
        MemorySegment handle = (MemorySegment) open.invokeExact(path, flags);
        MemorySegment text = (MemorySegment) error.invokeExact();
        if (!Native.isNull(handle)) {
          return "";
        }
        message = Native.string(text);
      }
      return message;
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall throws no checked exception", e);
    }
  }
}
