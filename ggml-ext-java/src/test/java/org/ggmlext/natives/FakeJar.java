package org.ggmlext.natives;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;

/** Writes a jar of libraries with their manifest, right or wrong. */
final class FakeJar {
  static final Platform PLATFORM = new Platform("linux", "x86_64");

  /** Small enough to read, different enough to tell apart. */
  static final Map<String, String> FILES =
      Map.of("liba.so", "the first library", "libb.so", "the second library");

  private final Map<String, String> files = new LinkedHashMap<>(FILES);
  private String manifest = manifest(FILES);

  static String manifest(Map<String, String> files) {
    StringBuilder text = new StringBuilder("libraries=" + String.join(",", files.keySet()) + "\n");
    files.forEach(
        (name, content) ->
            text.append("sha256.%s=%s\n".formatted(name, Sha256.of(content.getBytes(UTF_8)))));
    return text.toString();
  }

  /** Another content, or null for none; the manifest stays as it is. */
  FakeJar with(String name, String content) {
    files.put(name, content);
    return this;
  }

  FakeJar without(String name) {
    files.remove(name);
    return this;
  }

  /** SHA-256 of the manifest. */
  String digest() {
    return Sha256.of(manifest.getBytes(UTF_8));
  }

  /** A bundle that is read from this jar, as another process or class loader would read it. */
  NativeBundle bundle(Path temporary, Platform platform, NativeCache cache) throws IOException {
    Path jar = Files.createTempFile(temporary, "natives", ".jar");
    try (OutputStream out = Files.newOutputStream(jar);
        JarOutputStream entries = new JarOutputStream(out)) {
      write(entries, "manifest.properties", manifest);
      for (Map.Entry<String, String> file : files.entrySet()) {
        write(entries, file.getKey(), file.getValue());
      }
    }
    ClassLoader loader = new URLClassLoader(new URL[] {jar.toUri().toURL()}, null);
    return new NativeBundle("fake", "fake/", platform, loader, cache);
  }

  private static void write(JarOutputStream entries, String name, String content)
      throws IOException {
    entries.putNextEntry(new JarEntry("META-INF/native/" + PLATFORM + "/fake/" + name));
    entries.write(content.getBytes(UTF_8));
    entries.closeEntry();
  }
}
