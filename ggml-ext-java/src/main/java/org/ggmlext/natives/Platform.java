package org.ggmlext.natives;

import java.util.Locale;

/**
 * An operating system and a processor, as folders of native libraries are named.
 *
 * @param os such as {@code linux}, {@code macos}, {@code windows}
 * @param arch such as {@code x86_64}, {@code aarch64}
 */
record Platform(String os, String arch) {
  /** Of this virtual machine. */
  static Platform current() {
    return of(System.getProperty("os.name", "unknown"), System.getProperty("os.arch", "unknown"));
  }

  /** From Java's own names; one that is not known stays as it is. */
  static Platform of(String osName, String osArch) {
    String os = osName.toLowerCase(Locale.ROOT).replace(' ', '-');
    if (os.startsWith("mac")) {
      os = "macos";
    } else if (os.startsWith("windows")) {
      os = "windows";
    }
    String arch =
        switch (osArch.toLowerCase(Locale.ROOT)) {
          case "amd64", "x86_64", "x64" -> "x86_64";
          case "aarch64", "arm64" -> "aarch64";
          default -> osArch.toLowerCase(Locale.ROOT);
        };
    return new Platform(os, arch);
  }

  @Override
  public String toString() {
    return os + "-" + arch;
  }
}
