package org.ggmlext.bindings;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/** What the generated classes bind, read from the classes themselves. */
final class Generated {
  /** Tests call nothing of ggml: every function but this one is there, at an address of no use. */
  static final String MISSING = "ggml_cpu_has_avx512";

  private Generated() {}

  static void provideAddresses() {
    GgmlLookup.GGML.set(Generated::address);
    GgmlLookup.GGML_EXT.set(Generated::address);
  }

  private static Optional<MemorySegment> address(String name) {
    return name.equals(MISSING) ? Optional.empty() : Optional.of(MemorySegment.ofAddress(16));
  }

  /** A struct, as C names its type, to its layout. */
  static Map<String, GroupLayout> structs(Header header) {
    Map<String, GroupLayout> structs = new TreeMap<>();
    for (Class<?> type : classes(header)) {
      method(type, "layout")
          .filter(method -> method.getReturnType() == GroupLayout.class)
          .ifPresent(
              method -> {
                GroupLayout layout = (GroupLayout) call(method);
                String tag = layout.name().orElseThrow();
                boolean isTypedefOnly = !tag.equals(type.getSimpleName());
                structs.put((isTypedefOnly ? "" : "struct ") + type.getSimpleName(), layout);
              });
    }
    return structs;
  }

  /** Name of a macro or of an enum's constant to its value: an Integer, a Long or a String. */
  static Map<String, Object> constants(Header header) {
    Map<String, Object> constants = new TreeMap<>();
    for (Method method : headerMethods(header)) {
      if (method.getParameterCount() == 0 && method.getName().matches("[A-Z][A-Z0-9_a-z]*")) {
        Object value = call(method);
        constants.put(
            method.getName(), value instanceof MemorySegment text ? text.getString(0) : value);
      }
    }
    return constants;
  }

  /**
   * What C can call, as a C expression, to its descriptor: functions, callbacks, callback fields.
   */
  static Map<String, FunctionDescriptor> callables(Header header) {
    Map<String, FunctionDescriptor> callables = new TreeMap<>();
    for (Method method : headerMethods(header)) {
      String name = method.getName();
      if (name.endsWith("$descriptor") && !name.startsWith(MISSING)) {
        callables.put(name.substring(0, name.indexOf('$')), (FunctionDescriptor) call(method));
      }
    }
    for (Class<?> type : classes(header)) {
      method(type, "descriptor")
          .ifPresent(
              descriptor ->
                  callables.put(
                      "((" + type.getSimpleName() + ") a_pointer)",
                      (FunctionDescriptor) call(descriptor)));
      for (Class<?> field : type.getDeclaredClasses()) {
        method(field, "descriptor")
            .ifPresent(
                descriptor ->
                    callables.put(
                        "((struct %s *) a_pointer)->%s"
                            .formatted(type.getSimpleName(), field.getSimpleName()),
                        (FunctionDescriptor) call(descriptor)));
      }
    }
    return callables;
  }

  private static List<Class<?>> classes(Header header) {
    Path sources = Path.of("src/main/generated/org/ggmlext/bindings");
    List<Class<?>> classes = new ArrayList<>();
    try (Stream<Path> files = Files.list(sources)) {
      for (Path file : files.sorted().toList()) {
        String name = file.getFileName().toString().replace(".java", "");
        Class<?> type = Class.forName("org.ggmlext.bindings." + name);
        if (header.declares(type)) {
          classes.add(type);
        }
      }
    } catch (IOException | ClassNotFoundException e) {
      throw new AssertionError(e);
    }
    return classes;
  }

  private static List<Method> headerMethods(Header header) {
    return classes(header).stream()
        .filter(type -> type.getSimpleName().matches(".*_h(_\\d+)?"))
        .flatMap(type -> Arrays.stream(type.getDeclaredMethods()))
        .toList();
  }

  private static Optional<Method> method(Class<?> type, String name) {
    return Arrays.stream(type.getDeclaredMethods())
        .filter(method -> Modifier.isStatic(method.getModifiers()))
        .filter(method -> method.getName().equals(name) && method.getParameterCount() == 0)
        .findFirst();
  }

  private static Object call(Method method) {
    try {
      return method.invoke(null);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(method.toString(), e);
    }
  }
}
