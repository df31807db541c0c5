package org.ggmlext.natives;

import java.util.regex.Pattern;

/** What a system's shared libraries are, and what their files are called. */
public enum LibraryFormat {
  /** Linux and most others. */
  ELF("lib", ".so"),
  /** macOS. */
  MACH_O("lib", ".dylib"),
  /** Windows. */
  PE("", ".dll");

  private static final String VERSION = "(\\.\\d+)*";

  private final String prefix;
  private final String suffix;

  LibraryFormat(String prefix, String suffix) {
    this.prefix = prefix;
    this.suffix = suffix;
  }

  /** Of this virtual machine's system. */
  public static LibraryFormat current() {
    return of(Platform.current());
  }

  static LibraryFormat of(Platform platform) {
    return switch (platform.os()) {
      case "windows" -> PE;
      case "macos" -> MACH_O;
      default -> ELF;
    };
  }

  /** The file of a library, such as {@code libggml-ext.so} for {@code ggml-ext}. */
  public String file(String name) {
    return prefix + name + suffix;
  }

  /** What the system's own search is asked for, such as {@code libggml.so.0}. */
  public String systemFile(String name) {
    return this == ELF ? file(name) + ".0" : file(name);
  }

  /**
   * Matches the files of a library, with and without versions.
   *
   * @param name a regular expression
   */
  public Pattern files(String name) {
    String end = Pattern.quote(suffix);
    return Pattern.compile(prefix + name + (this == ELF ? end + VERSION : VERSION + end));
  }
}
