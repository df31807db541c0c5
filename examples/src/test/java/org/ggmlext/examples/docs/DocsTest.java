package org.ggmlext.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The documents show code that is compiled: regions between "docs: NAME" and "docs: end". */
class DocsTest {
  private static final Path ROOT = Path.of("..");
  private static final Path SOURCES = Path.of("src");
  private static final Path C_SOURCES = Path.of("src/test/c");

  @Test
  @DisplayName("Docs: each Java and C block of README.md and docs/ is a region of a compiled file")
  void blocksAreRegions() throws IOException {
    Collection<String> regions = regions().values();
    Map<String, String> blocks = blocks();
    assertThat(blocks).hasSizeGreaterThan(10);
    for (Map.Entry<String, String> block : blocks.entrySet()) {
      assertThat(regions).as("%s", block.getKey()).contains(block.getValue());
    }
  }

  @Test
  @DisplayName("Docs: each marked region is shown by a document")
  void regionsAreShown() throws IOException {
    Collection<String> blocks = blocks().values();
    for (Map.Entry<String, String> region : regions().entrySet()) {
      assertThat(blocks).as("%s", region.getKey()).contains(region.getValue());
    }
  }

  @Test
  @DisplayName("Docs: each relative link leads to a file")
  void links() throws IOException {
    Pattern link = Pattern.compile("\\]\\(([^)#\\s]+)[^)]*\\)");
    TreeSet<String> broken = new TreeSet<>();
    int found = 0;
    for (Path document : documents()) {
      Matcher matcher = link.matcher(Files.readString(document));
      while (matcher.find()) {
        String target = matcher.group(1);
        if (!target.contains("://")) {
          found++;
          if (!Files.exists(document.resolveSibling(target))) {
            broken.add(document.getFileName() + ": " + target);
          }
        }
      }
    }
    assertThat(found).isPositive();
    assertThat(broken).isEmpty();
  }

  @Test
  @DisplayName("Docs: the C code compiles without warnings, over ggml-ext.h alone")
  void cCompiles(@TempDir Path folder) throws Exception {
    List<Path> sources = files(C_SOURCES, ".c");
    assertThat(sources).isNotEmpty();
    for (Path source : sources) {
      CCompiler.sharedLibrary(source, folder.resolve(source.getFileName() + ".so"));
    }
  }

  private static List<Path> documents() throws IOException {
    List<Path> documents = new ArrayList<>(files(ROOT.resolve("docs"), ".md"));
    documents.add(ROOT.resolve("README.md"));
    return documents;
  }

  private static List<Path> files(Path folder, String end) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(file -> file.toString().endsWith(end)).sorted().toList();
    }
  }

  /** Blocks of code by "file:line". A test of org.ggmlext.kit checks those of verification.md. */
  private static Map<String, String> blocks() throws IOException {
    Map<String, String> blocks = new LinkedHashMap<>();
    for (Path document : documents()) {
      if (document.endsWith("verification.md")) {
        continue;
      }
      List<String> lines = Files.readAllLines(document);
      for (int i = 0; i < lines.size(); i++) {
        String fence = lines.get(i).strip();
        if (fence.startsWith("```")) {
          int end = i + 1;
          while (!lines.get(end).strip().equals("```")) {
            end++;
          }
          if (fence.equals("```java") || fence.equals("```c")) {
            blocks.put(document.getFileName() + ":" + (i + 1), text(lines.subList(i + 1, end)));
          }
          i = end;
        }
      }
    }
    return blocks;
  }

  /** Marked regions by "file: name". */
  private static Map<String, String> regions() throws IOException {
    Map<String, String> regions = new LinkedHashMap<>();
    List<Path> sources = new ArrayList<>(files(SOURCES, ".java"));
    sources.addAll(files(SOURCES, ".c"));
    for (Path source : sources) {
      List<String> lines = Files.readAllLines(source);
      for (int i = 0; i < lines.size(); i++) {
        String marker = lines.get(i).strip();
        if (marker.startsWith("// docs: ") && !marker.equals("// docs: end")) {
          int end = i + 1;
          while (!lines.get(end).strip().equals("// docs: end")) {
            end++;
          }
          regions.put(source.getFileName() + ": " + marker, text(lines.subList(i + 1, end)));
          i = end;
        }
      }
    }
    return regions;
  }

  private static String text(List<String> lines) {
    return String.join("\n", lines).stripTrailing().stripIndent().strip();
  }
}
