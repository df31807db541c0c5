package org.ggmlext.internal.load;

import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;

/** Where a jar on the class path brings the extension layer's libraries along. */
public interface ExtBundle {
  /** The folder that the libraries were extracted to; empty if this machine's are not in the jar. */
  Optional<Path> folder();

  /** The folder of the first bundle that has this machine's libraries. */
  static Optional<Path> find() {
    for (ExtBundle bundle : ServiceLoader.load(ExtBundle.class, ExtBundle.class.getClassLoader())) {
      Optional<Path> folder = bundle.folder();
      if (folder.isPresent()) {
        return folder;
      }
    }
    return Optional.empty();
  }
}
