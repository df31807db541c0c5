package org.ggmlext.natives;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;

/**
 * What {@code native/manifest.sh} writes: the libraries of one folder of a jar.
 *
 * @param origin where it was read, for messages
 * @param digest SHA-256 of the manifest itself
 * @param hashes SHA-256 of each file by name, in the manifest's order
 */
record Manifest(String origin, String digest, Map<String, String> hashes) {
  private static final Pattern FILE = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9._+-]*");
  private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");

  /**
   * Reads a manifest.
   *
   * @throws GgmlException if it lists nothing, or a file without a hash or with a path for a name
   */
  static Manifest parse(String origin, byte[] bytes) {
    Properties properties = new Properties();
    try {
      properties.load(new ByteArrayInputStream(bytes));
    } catch (IOException | IllegalArgumentException e) {
      throw new GgmlException(origin + " is no properties file: " + e.getMessage(), e);
    }
    Map<String, String> hashes = new LinkedHashMap<>();
    Stream.of("libraries", "backends")
        .flatMap(key -> Stream.of(properties.getProperty(key, "").split(",")))
        .filter(name -> !name.isBlank())
        .forEach(name -> hashes.put(name, hash(origin, properties, name)));
    if (hashes.isEmpty()) {
      throw new GgmlException(origin + " lists no libraries: it has no entry \"libraries\"");
    }
    return new Manifest(origin, Sha256.of(bytes), hashes);
  }

  private static String hash(String origin, Properties properties, String name) {
    if (!FILE.matcher(name).matches()) {
      throw new GgmlException(
          "%s lists \"%s\", which is no plain file name".formatted(origin, name));
    }
    String hash = properties.getProperty("sha256." + name, "");
    if (!HASH.matcher(hash).matches()) {
      throw new GgmlException(
          "%s has \"%s\" for sha256.%s, expected 64 hexadecimal digits"
              .formatted(origin, hash, name));
    }
    return hash;
  }
}
