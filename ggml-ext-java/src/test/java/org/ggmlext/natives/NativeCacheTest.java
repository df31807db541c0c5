package org.ggmlext.natives;

import static java.nio.file.attribute.PosixFilePermissions.fromString;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.ggmlext.GgmlException;
import org.ggmlext.natives.NativeCache.Candidate;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class NativeCacheTest {
  @TempDir Path temporary;
  private Path cache;
  private Path other;
  private final FakeJar jar = new FakeJar();

  @BeforeEach
  void folders() {
    cache = temporary.resolve("cache");
    other = temporary.resolve("other");
  }

  @Test
  @DisplayName("JAVA-5: libraries are unpacked as siblings, for their owner alone")
  void unpacks() throws IOException {
    Path folder = unpack(cache);
    assertThat(folder).isEqualTo(cache.toRealPath().resolve("linux-x86_64-" + jar.digest()));
    assertIntact(folder);
    assertThat(Files.getPosixFilePermissions(folder)).isEqualTo(fromString("rwx------"));
    assertThat(Files.getPosixFilePermissions(cache)).isEqualTo(fromString("rwx------"));
    assertThat(Files.getOwner(folder)).isEqualTo(Files.getOwner(temporary.resolve("cache")));
    assertThat(names(cache)).containsExactly(String.valueOf(folder.getFileName()));
  }

  @Test
  @DisplayName("JAVA-5: what is unpacked and intact is used as it is")
  void reuses() throws IOException {
    Path library = unpack(cache).resolve("liba.so");
    Object before = Files.getAttribute(library, "unix:ino");
    assertIntact(unpack(cache));
    assertThat(Files.getAttribute(library, "unix:ino")).isEqualTo(before);
  }

  /** What may happen to an unpacked library. */
  enum Damage {
    SAME_LENGTH {
      @Override
      void apply(Path library) throws IOException {
        FileTime time = Files.getLastModifiedTime(library);
        Files.writeString(library, "the f1rst library");
        Files.setLastModifiedTime(library, time);
      }
    },
    TRUNCATED {
      @Override
      void apply(Path library) throws IOException {
        Files.writeString(library, "the first");
      }
    },
    EMPTY {
      @Override
      void apply(Path library) throws IOException {
        Files.write(library, new byte[0]);
      }
    },
    DELETED {
      @Override
      void apply(Path library) throws IOException {
        Files.delete(library);
      }
    },
    LINK {
      @Override
      void apply(Path library) throws IOException {
        Path elsewhere = library.resolveSibling("elsewhere");
        Files.move(library, elsewhere);
        Files.createSymbolicLink(library, elsewhere);
      }
    };

    abstract void apply(Path library) throws IOException;
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource
  @DisplayName("JAVA-5: a library that was tampered with is replaced")
  void replacesDamaged(Damage damage) throws IOException {
    Path folder = unpack(cache);
    damage.apply(folder.resolve("liba.so"));
    assertThat(unpack(cache)).isEqualTo(folder);
    assertIntact(folder);
    assertThat(names(cache)).hasSize(1);
    assertThat(unpack(cache)).isEqualTo(folder);
    assertIntact(folder);
  }

  @Test
  @DisplayName("JAVA-5: a library that the manifest does not list is deleted before ggml finds it")
  void deletesStrangers() throws IOException {
    Path folder = unpack(cache);
    Files.writeString(folder.resolve("libggml-evil.so"), "a stranger");
    unpack(cache);
    assertThat(folder.resolve("libggml-evil.so")).doesNotExist();
    assertIntact(folder);
  }

  @Test
  @DisplayName("JAVA-5: a folder with loose permissions is closed to others and checked")
  void closesFolder() throws IOException {
    Path folder = unpack(cache);
    Files.setPosixFilePermissions(folder, fromString("rwxrwxrwx"));
    Files.writeString(folder.resolve("liba.so"), "by somebody else");
    assertThat(unpack(cache)).isEqualTo(folder);
    assertThat(Files.getPosixFilePermissions(folder)).isEqualTo(fromString("rwx------"));
    assertIntact(folder);
  }

  @Test
  @DisplayName("JAVA-5: a cache folder that others may write to is passed over")
  void looseCache() throws IOException {
    Files.createDirectories(cache);
    Files.setPosixFilePermissions(cache, fromString("rwxrwxrwx"));
    assertThat(unpack(cache, other)).startsWith(other.toRealPath());
    assertThatThrownBy(() -> unpack(cache))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("has mode 777: others than user");
  }

  @Test
  @DisplayName("JAVA-5: an unpacked folder of another user is passed over")
  void foreignFolder() throws IOException {
    Path folder = unpack(cache);
    int user = (int) Files.getAttribute(folder, "unix:uid");
    Assumptions.assumeTrue(user == 0, "only root may give a folder to another user");
    Files.setAttribute(folder, "unix:uid", 12345);
    assertThat(unpack(cache, other)).startsWith(other.toRealPath());
    assertThatThrownBy(() -> unpack(cache))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(folder + ": belongs to user 12345, expected 0");
  }

  @Test
  @DisplayName("JAVA-5: a cache folder of another user is passed over")
  void foreignCache() throws IOException {
    Files.createDirectories(cache);
    Assumptions.assumeTrue(
        (int) Files.getAttribute(cache, "unix:uid") == 0,
        "only root may give a folder to another user");
    Files.setAttribute(cache, "unix:uid", 12345);
    assertThat(unpack(cache, other)).startsWith(other.toRealPath());
  }

  @Test
  @DisplayName("issue list: a read-only cache directory is passed over")
  void readOnly() throws Exception {
    try (Mount mount = Mount.tmpfs(cache, "ro")) {
      assertIntact(unpack(mount.folder(), other));
      assertThat(names(other)).hasSize(1);
      assertThatThrownBy(() -> unpack(mount.folder()))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(mount.folder().toString())
          .hasMessageContaining("Read-only file system");
    }
  }

  @Test
  @DisplayName("issue list: a cache directory without write permission is passed over")
  void notWritable() throws IOException {
    Files.createDirectories(cache);
    Files.setPosixFilePermissions(cache, fromString("r-x------"));
    Assumptions.assumeFalse(Files.isWritable(cache), "root may write everywhere");
    assertIntact(unpack(cache, other));
    assertThat(names(cache)).isEmpty();
  }

  @Test
  @DisplayName("issue list: a noexec cache directory is passed over")
  void noexec() throws Exception {
    try (Mount mount = Mount.tmpfs(cache, "noexec,mode=0700")) {
      assertIntact(unpack(mount.folder(), other));
      assertThat(names(mount.folder())).isEmpty();
      assertThatThrownBy(() -> unpack(mount.folder()))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining(mount.folder() + ": is mounted noexec");
    }
  }

  @Test
  @DisplayName("JAVA-5: a full cache directory is passed over, and nothing is left in it")
  void full() throws Exception {
    jar.with("liba.so", "x".repeat(1 << 20));
    try (Mount mount = Mount.tmpfs(cache, "size=64k,mode=0700")) {
      assertThatThrownBy(() -> unpack(mount.folder()))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("No space left on device");
      assertThat(names(mount.folder())).isEmpty();
    }
  }

  @Test
  @DisplayName(
      "JAVA-5: where no cache folder can be used, the message lists all with their reasons")
  void noCandidate() throws IOException {
    Path file = Files.writeString(temporary.resolve("file"), "");
    Path below = file.resolve("below");
    assertThatThrownBy(() -> unpack(file, below))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("ggml.ext.cache")
        .hasMessageContaining("GGML_EXT_CACHE")
        .hasMessageContaining(file + " (candidate 0)")
        .hasMessageContaining(below + " (candidate 1)");
  }

  @Test
  @DisplayName("JAVA-5: a jar whose library has another hash is refused, and leaves nothing behind")
  void damagedJar() throws IOException {
    jar.with("libb.so", "not the second library");
    assertThatThrownBy(() -> unpack(cache, other))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("META-INF/native/linux-x86_64/fake/manifest.properties")
        .hasMessageContaining("is damaged: libb.so has SHA-256 ")
        .hasMessageContaining("expected " + Sha256.of("the second library".getBytes()));
    assertThat(names(cache)).isEmpty();
    assertThat(other).doesNotExist();
  }

  @Test
  @DisplayName("JAVA-5: a jar without a library that its manifest lists is refused")
  void incompleteJar() {
    jar.without("libb.so");
    assertThatThrownBy(() -> unpack(cache))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("lists libb.so, but that is not beside it");
  }

  @Test
  @DisplayName(
      "JAVA-5: a machine that no jar has libraries for gets none, and is told what was sought")
  void unknownPlatform() throws IOException {
    NativeBundle bundle =
        jar.bundle(temporary, new Platform("plan9", "mips"), new NativeCache(candidates(cache)));
    assertThat(bundle.folder()).isEqualTo(Optional.empty());
    assertThat(bundle)
        .hasToString("META-INF/native/plan9-mips/fake/manifest.properties of the jar fake");
    assertThat(cache).doesNotExist();
  }

  @Test
  @DisplayName("JAVA-5: the cache is sought in property, environment, XDG cache, temporary folder")
  void order() {
    Map<String, String> properties =
        Map.of(
            "ggml.ext.cache", "/p", "user.home", "/h", "user.name", "me", "java.io.tmpdir", "/t");
    Map<String, String> environment = Map.of("GGML_EXT_CACHE", "/e", "XDG_CACHE_HOME", "/x");
    assertThat(sought(properties, environment))
        .containsExactly("/p", "/e", "/x/ggml-ext", "/t/ggml-ext-me");
    assertThat(sought(properties, Map.of()))
        .containsExactly("/p", "/h/.cache/ggml-ext", "/t/ggml-ext-me");
    assertThat(sought(properties, Map.of("XDG_CACHE_HOME", "relative", "GGML_EXT_CACHE", " ")))
        .containsExactly("/p", "/h/.cache/ggml-ext", "/t/ggml-ext-me");
    assertThat(
            sought(Map.of("user.home", "?", "user.name", "me", "java.io.tmpdir", "/t"), Map.of()))
        .containsExactly("/t/ggml-ext-me");
    assertThat(sought(properties, Map.of("LOCALAPPDATA", "/l")))
        .as("on Windows")
        .startsWith("/p", "/l/ggml-ext");
  }

  @Test
  @DisplayName("JAVA-5: a setting that is no path here is passed over, with its reason")
  void noPath() throws IOException {
    String bad = "/h\u0000me";
    Map<String, String> properties =
        Map.of("user.home", bad, "user.name", "me", "java.io.tmpdir", cache.toString());
    NativeCache found =
        new NativeCache(
            NativeCache.candidates(properties::get, Map.of("GGML_EXT_CACHE", bad)::get));
    assertThat(jar.bundle(temporary, FakeJar.PLATFORM, found).folder().orElseThrow().getParent())
        .isEqualTo(cache.resolve("ggml-ext-me"));
    NativeCache none = new NativeCache(found.candidates().subList(0, 2));
    assertThatThrownBy(() -> jar.bundle(temporary, FakeJar.PLATFORM, none).folder())
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining(bad + " (environment variable GGML_EXT_CACHE): ")
        .hasMessageContaining(bad + " (the home folder): ")
        .hasMessageContaining("Nul character not allowed");
  }

  private static List<String> sought(
      Map<String, String> properties, Map<String, String> environment) {
    return NativeCache.candidates(properties::get, environment::get).stream()
        .map(Candidate::folder)
        .toList();
  }

  private Path unpack(Path... folders) throws IOException {
    return jar.bundle(temporary, FakeJar.PLATFORM, new NativeCache(candidates(folders)))
        .folder()
        .orElseThrow();
  }

  private static List<Candidate> candidates(Path... folders) {
    List<Path> list = Arrays.asList(folders);
    return list.stream()
        .map(folder -> new Candidate("candidate " + list.indexOf(folder), folder.toString()))
        .toList();
  }

  private static void assertIntact(Path folder) throws IOException {
    for (Map.Entry<String, String> file : FakeJar.FILES.entrySet()) {
      Path path = folder.resolve(file.getKey());
      assertThat(Files.isSymbolicLink(path)).as("%s is a link", path).isFalse();
      assertThat(path).hasContent(file.getValue());
    }
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> String.valueOf(file.getFileName())).sorted().toList();
    }
  }
}
