package org.ggmlext.internal.load;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import org.ggmlext.GgmlException;

/** A path that a system property or an environment variable names. */
record Setting(String origin, String value) {
  /** The system property, else the environment variable, else nothing. */
  static Optional<Setting> find(String property, String variable) {
    String set = System.getProperty(property);
    if (set != null) {
      return Optional.of(new Setting("the system property " + property, set));
    }
    return Optional.ofNullable(System.getenv(variable))
        .map(value -> new Setting("the environment variable " + variable, value));
  }

  /**
   * The path.
   *
   * @throws GgmlException if the value is empty or no path: what is set counts, and is not passed
   *     over
   */
  Path path() {
    if (value.isBlank()) {
      throw new GgmlException(origin + " is empty: name a path, or do not set it");
    }
    try {
      return Path.of(value);
    } catch (InvalidPathException e) {
      throw new GgmlException(
          "%s says \"%s\", which is no path here: %s".formatted(origin, value, e.getReason()), e);
    }
  }
}
