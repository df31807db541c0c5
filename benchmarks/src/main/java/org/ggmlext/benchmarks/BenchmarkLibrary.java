package org.ggmlext.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import org.ggmlext.GgmlException;

/** The library that is built from {@code src/main/native}. */
final class BenchmarkLibrary {
  private static final String FILE =
      "/META-INF/native/linux-x86_64/benchmarks/libggml-ext-benchmarks.so";

  private BenchmarkLibrary() {}

  /**
   * The library's file, beside the classes.
   *
   * @throws GgmlException if it was not built
   */
  static Path path() {
    URL url = BenchmarkLibrary.class.getResource(FILE);
    if (url == null || !url.getProtocol().equals("file")) {
      throw new GgmlException(
          "the native side of the benchmarks is missing: no "
              + FILE
              + " in a folder of the class path; build it with ./bench or mvn package");
    }
    try {
      return Path.of(url.toURI());
    } catch (URISyntaxException e) {
      throw new AssertionError(e);
    }
  }

  /** The address of an exported function. libggml-ext must be loaded. */
  static MemorySegment address(String function) {
    return SymbolLookup.libraryLookup(path(), Arena.global()).findOrThrow(function);
  }

  /** An exported function. libggml-ext must be loaded. */
  static MethodHandle function(String name, FunctionDescriptor type, Linker.Option... options) {
    return Linker.nativeLinker().downcallHandle(address(name), type, options);
  }
}
