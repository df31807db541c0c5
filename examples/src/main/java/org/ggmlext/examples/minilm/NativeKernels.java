package org.ggmlext.examples.minilm;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.ggmlext.GgmlException;

/** The library that is built from {@code src/main/c}. */
final class NativeKernels {
  private static final String FILE = "/META-INF/native/linux-x86_64/minilm/libminilm-kernels.so";

  private NativeKernels() {}

  /**
   * The library's file: the one beside the classes, or, where they are in a jar, a temporary copy.
   *
   * @throws GgmlException if it was not built for this platform
   */
  static Path library() {
    URL url = NativeKernels.class.getResource(FILE);
    if (url == null) {
      throw new GgmlException("the native kernels of the example are missing: no " + FILE);
    }
    try {
      return url.getProtocol().equals("file") ? Path.of(new URI(url.toString())) : copy(url);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot copy " + url, e);
    } catch (URISyntaxException e) {
      throw new AssertionError("a resource's URL is a URI", e);
    }
  }

  private static Path copy(URL url) throws IOException {
    Path file = Files.createTempFile("minilm-kernels", ".so");
    file.toFile().deleteOnExit();
    try (InputStream in = url.openStream()) {
      Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
    }
    return file;
  }
}
