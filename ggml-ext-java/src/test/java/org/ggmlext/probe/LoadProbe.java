package org.ggmlext.probe;

import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.ggmlext.Ggml;
import org.ggmlext.ext.Extensions;

/**
 * What tests run in processes of their own, outside the packages of the library; prints what it
 * finds as lines {@code key=value}.
 */
public final class LoadProbe {
  private LoadProbe() {}

  /**
   * Runs one probe.
   *
   * @param arguments {@code load}, {@code attach}, {@code open LIBRARY} before loading, or {@code
   *     loaders}
   */
  public static void main(String[] arguments) {
    try {
      switch (arguments[0]) {
        case "load" -> print(Ggml.load());
        case "attach" -> {
          Ggml ggml = Ggml.load();
          print(ggml);
          System.out.println("abi=" + Extensions.attach(ggml).abi());
        }
        case "open" -> {
          SymbolLookup.libraryLookup(Path.of(arguments[1]), Arena.global());
          print(Ggml.load());
        }
        case "loaders" -> {
          describeInLoader("first");
          describeInLoader("second");
        }
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    } catch (Throwable e) {
      System.out.println("exception=" + e.getClass().getName());
      System.out.println("message=" + e.getMessage());
      e.printStackTrace(System.out);
      System.exit(3);
    }
  }

  private static void print(Ggml ggml) {
    System.out.println("base=" + ggml.baseLibrary());
    System.out.println("devices=" + ggml.devices());
    System.out.println("named=" + Ggml.class.getModule().isNamed());
  }

  /** Loads ggml through classes of our library that nobody else in this process has. */
  private static void describeInLoader(String key) throws Exception {
    List<URL> urls = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
      urls.add(Path.of(entry).toUri().toURL());
    }
    ClassLoader loader =
        new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    Class<?> type = Class.forName(Ggml.class.getName(), true, loader);
    if (type == Ggml.class) {
      throw new AssertionError("the class loaders share their classes");
    }
    Object ggml = type.getMethod("load").invoke(null);
    loader.loadClass(Extensions.class.getName()).getMethod("attach", type).invoke(null, ggml);
    System.out.println(
        "%s=%s %s"
            .formatted(
                key,
                type.getMethod("baseLibrary").invoke(ggml),
                type.getMethod("devices").invoke(ggml)));
  }
}
