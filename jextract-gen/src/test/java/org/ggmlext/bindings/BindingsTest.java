package org.ggmlext.bindings;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.SequenceLayout;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Compares the committed bindings with what a C compiler says of the headers. */
class BindingsTest {
  /** An argument of every type, and a number for the kind of value that an expression has. */
  private static final String DECLARATIONS =
      """
      static void *a_pointer;
      static _Bool a_bool;
      static signed char a_char;
      static short a_short;
      static int a_int;
      static long long a_long;
      static float a_float;
      static double a_double;
      enum { INTEGER = 0, POINTER = 5, REAL = 8, RECORD = 12 }; // as the built-in numbers them
      #define CLASS(x) __builtin_classify_type(x)
      #define KIND(x) \
          (CLASS(x) == POINTER || CLASS(x) == REAL || CLASS(x) == RECORD ? CLASS(x) : INTEGER)
      """;

  /** A value that Java has, and the C expression that must have it as well. */
  private record Claim(String what, long value, String expression) {}

  @TempDir private Path directory;

  @BeforeAll
  static void provideAddresses() {
    Generated.provideAddresses();
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource
  @DisplayName("JAVA-1: sizes, offsets and kinds of fields are those of the C compiler")
  void structs(Header header) throws Exception {
    List<Claim> claims = new ArrayList<>();
    Generated.structs(header).forEach((type, layout) -> claim(claims, type, layout));
    assertThat(claims).hasSizeGreaterThan(50);
    verify(header, claims);
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource
  @DisplayName("JAVA-1: constants have the C compiler's values")
  void constants(Header header) throws Exception {
    List<Claim> claims = new ArrayList<>();
    Generated.constants(header)
        .forEach(
            (name, value) ->
                claims.add(
                    value instanceof String string
                        ? new Claim(name, 0, "strcmp(%s, \"%s\")".formatted(name, string))
                        : new Claim(name, ((Number) value).longValue(), name)));
    assertThat(claims).hasSizeGreaterThan(20);
    verify(header, claims);
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource
  @DisplayName("JAVA-1: functions and callbacks return what the C compiler says")
  void returnValues(Header header) throws Exception {
    Map<String, GroupLayout> structs = Generated.structs(header);
    List<Claim> claims = new ArrayList<>();
    Generated.callables(header)
        .forEach(
            (callee, descriptor) -> {
              String call = "__typeof__(" + call(callee, arguments(descriptor, structs)) + ")";
              boolean isVoid = descriptor.returnLayout().isEmpty();
              claims.add(
                  new Claim(
                      callee + " returns nothing",
                      isVoid ? 1 : 0,
                      "__builtin_types_compatible_p(" + call + ", void)"));
              descriptor
                  .returnLayout()
                  .ifPresent(
                      layout -> {
                        String value = "*(" + call + " *) a_pointer";
                        claims.add(claimSize(callee, layout, value));
                        claims.add(claimKind(callee, layout, value));
                      });
            });
    verify(header, claims);
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource
  @DisplayName("JAVA-1: functions and callbacks take the bound arguments, and no wider ones")
  void parameters(Header header) throws Exception {
    Map<String, GroupLayout> structs = Generated.structs(header);
    List<String> exact = new ArrayList<>();
    List<String> wider = new ArrayList<>();
    Generated.callables(header)
        .forEach(
            (callee, descriptor) -> {
              List<String> arguments = arguments(descriptor, structs);
              exact.add(call(callee, arguments));
              for (int i = 0; i < arguments.size(); i++) {
                String argument = arguments.get(i);
                if (argument.equals("a_int") || argument.equals("a_float")) {
                  List<String> changed = new ArrayList<>(arguments);
                  changed.set(i, argument.equals("a_int") ? "a_long" : "a_double");
                  wider.add(call(callee, changed));
                }
              }
            });
    assertThat(exact).hasSizeGreaterThan(30);
    CCompiler compiler = new CCompiler(header, directory, DECLARATIONS);
    Map<Integer, String> wrong =
        compiler.diagnose(
            exact, "-Wconversion", "-Wno-sign-conversion", "-Wno-deprecated-declarations");
    assertThat(wrong.keySet())
        .as("calls that C refuses")
        .extracting(i -> exact.get(i) + ": " + wrong.get(i))
        .isEmpty();
    // A long is too wide for an int; for an enum GCC says so as a matter of C++.
    Map<Integer, String> narrowed = compiler.diagnose(wider, "-Wconversion", "-Wc++-compat");
    assertThat(IntStream.range(0, wider.size()))
        .filteredOn(
            i -> !narrowed.getOrDefault(i, "").matches(".*(conversion from|enum conversion).*"))
        .as("calls whose long or double C takes without narrowing it")
        .extracting(wider::get)
        .isEmpty();
  }

  @Test
  @DisplayName("JAVA-1: every function, struct and constant of ggml-ext.h is bound")
  void complete() {
    String text = Header.GGML_EXT.text().replaceAll("//.*", "");
    List<String> functions = matches("(?m)^GGML_EXT_API\\b[^;(]*?(\\w+)\\s*\\(", text);
    List<String> structs = matches("\\b(struct \\w+) \\{", text);
    List<String> constants = matches("(?m)^ +(GGML_EXT_\\w+) *(?:=[^,}]*)?,?\\s*$", text);
    assertThat(functions).hasSizeGreaterThan(10);
    assertThat(structs).hasSizeGreaterThan(10);
    assertThat(constants).hasSizeGreaterThan(10);
    assertThat(Generated.callables(Header.GGML_EXT)).containsKeys(functions.toArray(String[]::new));
    assertThat(Generated.structs(Header.GGML_EXT)).containsKeys(structs.toArray(String[]::new));
    assertThat(Generated.constants(Header.GGML_EXT)).containsKeys(constants.toArray(String[]::new));
  }

  private void verify(Header header, List<Claim> claims) throws Exception {
    List<Long> values =
        new CCompiler(header, directory, DECLARATIONS)
            .evaluate(claims.stream().map(Claim::expression).toList());
    assertThat(values).hasSameSizeAs(claims);
    assertThat(IntStream.range(0, claims.size()))
        .filteredOn(i -> claims.get(i).value() != values.get(i))
        .as("what differs: Java's value, C's value")
        .extracting(i -> claims.get(i).what() + ": " + claims.get(i).value() + ", " + values.get(i))
        .isEmpty();
  }

  private static void claim(List<Claim> claims, String type, GroupLayout layout) {
    claims.add(new Claim("size of " + type, layout.byteSize(), "sizeof(" + type + ")"));
    claims.add(new Claim("alignment of " + type, layout.byteAlignment(), "_Alignof(" + type + ")"));
    for (MemoryLayout field : layout.memberLayouts()) {
      if (field instanceof PaddingLayout) {
        continue;
      }
      String name = field.name().orElseThrow();
      String what = type + "." + name;
      claims.add(
          new Claim(
              "offset of " + what,
              layout.byteOffset(groupElement(name)),
              "__builtin_offsetof(" + type + ", " + name + ")"));
      String value = "((" + type + " *) a_pointer)->" + name;
      claims.add(claimSize(what, field, value));
      MemoryLayout element = field;
      while (element instanceof SequenceLayout sequence) {
        element = sequence.elementLayout();
        value += "[0]";
        claims.add(claimSize(what, element, value));
      }
      claims.add(claimKind(what, element, value));
    }
  }

  private static Claim claimSize(String what, MemoryLayout layout, String value) {
    return new Claim("size of " + what, layout.byteSize(), "sizeof(" + value + ")");
  }

  private static Claim claimKind(String what, MemoryLayout layout, String value) {
    String kind =
        switch (layout) {
          case AddressLayout _ -> "POINTER";
          case ValueLayout.OfFloat _, ValueLayout.OfDouble _ -> "REAL";
          case GroupLayout _ -> "RECORD";
          default -> "INTEGER";
        };
    return new Claim(what + " is a " + kind, 1, "KIND(" + value + ") == " + kind);
  }

  private static List<String> arguments(
      FunctionDescriptor descriptor, Map<String, GroupLayout> structs) {
    return descriptor.argumentLayouts().stream()
        .map(
            layout ->
                switch (layout) {
                  case AddressLayout _ -> "a_pointer";
                  case ValueLayout.OfBoolean _ -> "a_bool";
                  case ValueLayout.OfByte _ -> "a_char";
                  case ValueLayout.OfShort _ -> "a_short";
                  case ValueLayout.OfInt _ -> "a_int";
                  case ValueLayout.OfLong _ -> "a_long";
                  case ValueLayout.OfFloat _ -> "a_float";
                  case ValueLayout.OfDouble _ -> "a_double";
                  case GroupLayout group -> "*(" + typeOf(group, structs) + " *) a_pointer";
                  default -> throw new AssertionError(layout);
                })
        .toList();
  }

  private static String call(String callee, List<String> arguments) {
    return callee + "(" + String.join(", ", arguments) + ")";
  }

  private static String typeOf(GroupLayout layout, Map<String, GroupLayout> structs) {
    return structs.keySet().stream()
        .filter(type -> structs.get(type).equals(layout))
        .findFirst()
        .orElseThrow(() -> new AssertionError("not among the bound structs: " + layout));
  }

  private static List<String> matches(String pattern, String text) {
    Matcher matcher = Pattern.compile(pattern).matcher(text);
    return matcher.results().map(result -> result.group(1)).toList();
  }
}
