package org.ggmlext.natives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A file system in memory, mounted on a folder until it is closed. */
record Mount(Path folder) implements AutoCloseable {
  /** Skips the calling test where this user may not mount. */
  static Mount tmpfs(Path folder, String options) throws IOException, InterruptedException {
    Files.createDirectories(folder);
    Assumptions.assumeTrue(
        run("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder.toString()),
        "mounting a file system with the option " + options + " needs root's rights");
    return new Mount(folder);
  }

  @Override
  public void close() throws IOException {
    try {
      if (!run("umount", folder.toString())) {
        throw new IOException("cannot unmount " + folder);
      }
    } catch (InterruptedException e) {
      throw new IOException("interrupted while unmounting " + folder, e);
    }
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    Path tool =
        Stream.of("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/")
            .map(folder -> Path.of(folder + command[0]))
            .filter(Files::isExecutable)
            .findFirst()
            .orElse(null);
    if (tool == null) {
      return false;
    }
    Process process =
        new ProcessBuilder(
                Stream.concat(Stream.of(tool.toString()), List.of(command).stream().skip(1))
                    .toList())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    return process.waitFor(30, TimeUnit.SECONDS) && process.exitValue() == 0;
  }
}
