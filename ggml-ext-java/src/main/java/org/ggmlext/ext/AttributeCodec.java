package org.ggmlext.ext;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.RecordComponent;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/**
 * Turns a record into the bytes of a C struct with the same fields (little-endian, naturally
 * aligned) and back. The method handles are made once.
 */
final class AttributeCodec<A extends Record> {
  private record Field(String name, Class<?> type, int offset, MethodHandle accessor) {}

  private final Class<A> type;
  private final List<Field> fields;
  private final MethodHandle constructor;
  private final int size;

  private AttributeCodec(Class<A> type, List<Field> fields, MethodHandle constructor, int size) {
    this.type = type;
    this.fields = fields;
    this.constructor = constructor;
    this.size = size;
  }

  /**
   * Makes the codec of a record.
   *
   * @throws IllegalArgumentException if a component's type has no counterpart, the struct is larger
   *     than an operator's attributes may be, or the record cannot be reached
   */
  static <A extends Record> AttributeCodec<A> of(Class<A> type, MethodHandles.Lookup caller) {
    RecordComponent[] components = type.getRecordComponents();
    Field[] fields = new Field[components.length];
    try {
      MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(type, caller);
      int end = 0;
      int alignment = 1;
      for (int i = 0; i < components.length; i++) {
        Class<?> component = components[i].getType();
        int width = width(type, components[i]);
        int offset = roundUp(end, width);
        MethodHandle accessor =
            lookup
                .findVirtual(type, components[i].getName(), MethodType.methodType(component))
                .asType(MethodType.methodType(Object.class, Record.class));
        fields[i] = new Field(components[i].getName(), component, offset, accessor);
        end = offset + width;
        alignment = Math.max(alignment, width);
      }
      int size = roundUp(end, alignment);
      if (size > ggml_ext_h.GGML_EXT_MAX_ATTR_SIZE()) {
        throw new IllegalArgumentException(
            type.getName()
                + " takes "
                + size
                + " bytes, but an operator's attributes have at most "
                + ggml_ext_h.GGML_EXT_MAX_ATTR_SIZE());
      }
      Class<?>[] types =
          Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
      MethodHandle constructor =
          lookup
              .findConstructor(type, MethodType.methodType(void.class, types))
              .asSpreader(Object[].class, types.length)
              .asType(MethodType.methodType(Record.class, Object[].class));
      return new AttributeCodec<>(type, List.of(fields), constructor, size);
    } catch (ReflectiveOperationException e) {
      throw new IllegalArgumentException(
          type.getName()
              + " cannot be reached; open its package to org.ggmlext, or give a lookup that sees"
              + " it",
          e);
    }
  }

  private static int width(Class<?> owner, RecordComponent component) {
    Class<?> type = component.getType();
    if (type == boolean.class || type == byte.class) {
      return Byte.BYTES;
    }
    if (type == short.class) {
      return Short.BYTES;
    }
    if (type == int.class || type == float.class || type.isEnum()) {
      return Integer.BYTES;
    }
    if (type == long.class || type == double.class) {
      return Long.BYTES;
    }
    throw new IllegalArgumentException(
        "component "
            + component.getName()
            + " of "
            + owner.getName()
            + " is a "
            + type.getSimpleName()
            + "; attributes are boolean, byte, short, int, long, float, double or an enum");
  }

  private static int roundUp(int value, int multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }

  /** Bytes of the struct, its padding included; 0 for a record without components. */
  int size() {
    return size;
  }

  byte[] encode(A attributes) {
    ByteBuffer buffer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    for (Field field : fields) {
      Object value = read(field, attributes);
      if (value == null) {
        throw new NullPointerException(
            "component %s of %s is null".formatted(field.name(), type.getSimpleName()));
      }
      put(buffer, field.offset(), value);
    }
    return buffer.array();
  }

  A decode(byte[] bytes) {
    if (bytes.length != size) {
      throw new IllegalArgumentException(
          type.getName() + " takes " + size + " bytes, but the node carries " + bytes.length);
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    Object[] values = new Object[fields.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = get(buffer, fields.get(i));
    }
    try {
      return type.cast((Record) constructor.invokeExact(values));
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalArgumentException(type.getName() + " refuses " + Arrays.toString(values), e);
    }
  }

  private static @Nullable Object read(Field field, Record attributes) {
    try {
      return (Object) field.accessor().invokeExact(attributes);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalArgumentException("an accessor of " + attributes.getClass() + " failed", e);
    }
  }

  private static void put(ByteBuffer buffer, int offset, Object value) {
    switch (value) {
      case Boolean v -> buffer.put(offset, (byte) (v ? 1 : 0));
      case Byte v -> buffer.put(offset, v);
      case Short v -> buffer.putShort(offset, v);
      case Integer v -> buffer.putInt(offset, v);
      case Float v -> buffer.putFloat(offset, v);
      case Enum<?> v -> buffer.putInt(offset, v.ordinal());
      case Long v -> buffer.putLong(offset, v);
      case Double v -> buffer.putDouble(offset, v);
      default -> throw new AssertionError(value.getClass());
    }
  }

  private Object get(ByteBuffer buffer, Field field) {
    int offset = field.offset();
    Class<?> t = field.type();
    if (t == boolean.class) {
      return buffer.get(offset) != 0;
    } else if (t == byte.class) {
      return buffer.get(offset);
    } else if (t == short.class) {
      return buffer.getShort(offset);
    } else if (t == int.class) {
      return buffer.getInt(offset);
    } else if (t == float.class) {
      return buffer.getFloat(offset);
    } else if (t == long.class) {
      return buffer.getLong(offset);
    } else if (t == double.class) {
      return buffer.getDouble(offset);
    }
    Object[] constants = t.getEnumConstants();
    int ordinal = buffer.getInt(offset);
    if (ordinal < 0 || ordinal >= constants.length) {
      throw new IllegalArgumentException(
          type.getName() + ": " + t.getSimpleName() + " has no constant number " + ordinal);
    }
    return constants[ordinal];
  }
}
