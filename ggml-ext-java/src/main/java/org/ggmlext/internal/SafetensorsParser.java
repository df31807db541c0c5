package org.ggmlext.internal;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.exc.InputCoercionException;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.ggmlext.GgmlException;
import org.ggmlext.Shape;
import org.ggmlext.StoredTensor;

/** Reads the header of a safetensors file: its length in eight bytes, then JSON. */
public final class SafetensorsParser {
  /** What the format's own library accepts at most. */
  private static final int MAX_HEADER = 100_000_000;

  /** Longer numbers are shortened in messages. */
  private static final int MAX_DIGITS = 40;

  // Jackson's own limits are lower; the header's length bounds everything in it.
  private static final JsonFactory JSON =
      new JsonFactoryBuilder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxStringLength(MAX_HEADER)
                  .maxNameLength(MAX_HEADER)
                  .maxNumberLength(MAX_HEADER)
                  .build())
          .build();

  private final FileReader reader;
  private final Map<String, StoredTensor> tensors = new LinkedHashMap<>();
  private final Map<String, String> metadata = new LinkedHashMap<>();
  private final long dataBegin;

  /**
   * Reads a file.
   *
   * @throws GgmlException if it is malformed; the message says what is wrong
   */
  public SafetensorsParser(MappedFile file) {
    reader = new FileReader(file.path(), file.bytes());
    long length = reader.readLong("the length of the header");
    if (length < 2 || length > MAX_HEADER) {
      throw reader.bad(
          "this is no safetensors file: it begins with %s, and not with the length of a header, 2"
                  .formatted(firstBytes(file))
              + " to "
              + MAX_HEADER);
    }
    String header = reader.readText(length, "the header");
    dataBegin = reader.position();
    try (JsonParser json = JSON.createParser(header)) {
      readHeader(json);
    } catch (IOException e) {
      throw new GgmlException("%s: the header is no JSON: %s".formatted(file.path(), e), e);
    }
    checkRanges(file.bytes().byteSize() - dataBegin);
  }

  private static String firstBytes(MappedFile file) {
    byte[] first = file.bytes().asSlice(0, Long.BYTES).toArray(ValueLayout.JAVA_BYTE);
    String hex = HexFormat.ofDelimiter(" ").formatHex(first);
    String text = new String(first, StandardCharsets.US_ASCII);
    return hex + " (\"" + text.replaceAll("[^ -~]", ".") + "\")";
  }

  /** Where the data begin. */
  public long dataBegin() {
    return dataBegin;
  }

  /** What the file says about itself. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /** The tensors, in the header's order. */
  public Map<String, StoredTensor> tensors() {
    return tensors;
  }

  private void readHeader(JsonParser json) throws IOException {
    expect(json.nextToken(), JsonToken.START_OBJECT, "the header");
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String name = json.currentName();
      expect(json.nextToken(), JsonToken.START_OBJECT, name);
      if (name.equals("__metadata__")) {
        readMetadata(json);
      } else {
        readTensor(json, name);
      }
    }
    if (json.nextToken() != null) {
      throw reader.bad("there is more than spaces after the header's JSON object");
    }
  }

  private void readMetadata(JsonParser json) throws IOException {
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String key = json.currentName();
      expect(json.nextToken(), JsonToken.VALUE_STRING, "the metadata " + key);
      metadata.put(key, json.getText());
    }
  }

  private void readTensor(JsonParser json, String name) throws IOException {
    String dtype = "";
    List<Long> shape = null;
    List<Long> offsets = null;
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String key = json.currentName();
      JsonToken token = json.nextToken();
      switch (key) {
        case "dtype" -> {
          expect(token, JsonToken.VALUE_STRING, "the dtype of " + name);
          dtype = json.getText();
        }
        case "shape" -> shape = readLongs(json, token, "the shape of " + name);
        case "data_offsets" -> offsets = readLongs(json, token, "the offsets of " + name);
        default ->
            throw reader.bad("the tensor \"%s\" has an unknown key \"%s\"".formatted(name, key));
      }
    }
    if (dtype.isEmpty() || shape == null || offsets == null || offsets.size() != 2) {
      throw reader.bad(
          "the tensor \"%s\" needs a dtype, a shape and two data_offsets".formatted(name));
    }
    tensors.put(name, tensor(name, dtype, shape, offsets.get(0), offsets.get(1)));
  }

  private StoredTensor tensor(String name, String called, List<Long> sizes, long begin, long end) {
    SafetensorsDtype dtype = SafetensorsDtype.find(called);
    if (dtype == null) {
      throw reader.bad(
          "the tensor \"%s\" has the dtype \"%s\"; known are %s"
              .formatted(name, called, SafetensorsDtype.names()));
    }
    Shape shape;
    long bytes;
    try {
      bytes = dtype.byteSize(sizes);
      shape = dtype.shape(sizes);
    } catch (IllegalArgumentException e) {
      throw new GgmlException(
          reader
              .bad("the tensor \"%s\" cannot be: %s".formatted(name, e.getMessage()))
              .getMessage(),
          e);
    }
    if (begin < 0 || end < begin || end - begin != bytes) {
      throw reader.bad(
          "the tensor \"%s\" %s %s has %d bytes, its offsets %d to %d say something else"
              .formatted(name, dtype, sizes, bytes, begin, end));
    }
    return new StoredTensor(name, dtype.type(), called, shape, sizes, begin, bytes);
  }

  private List<Long> readLongs(JsonParser json, JsonToken token, String what) throws IOException {
    expect(token, JsonToken.START_ARRAY, what);
    List<Long> values = new ArrayList<>();
    for (JsonToken next = json.nextToken(); next != JsonToken.END_ARRAY; next = json.nextToken()) {
      expect(next, JsonToken.VALUE_NUMBER_INT, what);
      values.add(readLong(json, what));
    }
    return values;
  }

  private long readLong(JsonParser json, String what) throws IOException {
    try {
      return json.getLongValue();
    } catch (InputCoercionException e) {
      String number = json.getText();
      if (number.length() > MAX_DIGITS) {
        number = number.substring(0, MAX_DIGITS) + "...";
      }
      throw new GgmlException(
          reader
              .bad("%s: %s, expected 0 to %d".formatted(what, number, Long.MAX_VALUE))
              .getMessage(),
          e);
    }
  }

  /** The data must be covered without gaps or overlaps: what is between could hide anything. */
  private void checkRanges(long room) {
    List<StoredTensor> inOrder = new ArrayList<>(tensors.values());
    inOrder.sort(
        Comparator.comparingLong(StoredTensor::offset).thenComparing(StoredTensor::byteSize));
    long end = 0;
    for (StoredTensor tensor : inOrder) {
      if (tensor.offset() != end) {
        throw reader.bad(
            "the tensor \"%s\" begins at byte %d of the data, the one before ends at %d"
                .formatted(tensor.name(), tensor.offset(), end));
      }
      end += tensor.byteSize();
    }
    if (end != room) {
      throw reader.bad("the tensors need %d bytes of data, the file has %d".formatted(end, room));
    }
  }

  private void expect(JsonToken token, JsonToken expected, String what) {
    if (token != expected) {
      throw reader.bad("%s: %s expected, %s found".formatted(what, expected, token));
    }
  }
}
