package org.ggmlext.ext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.invoke.MethodHandles;
import java.util.HexFormat;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class AttributeCodecTest {
  enum Mode {
    PAIRS,
    HALVES
  }

  record Mixed(boolean flag, int count, byte small, double scale, short pair, Mode mode) {}

  record Forty(long a, long b, long c, long d, long e) {}

  record FortyOne(long a, long b, long c, long d, long e, boolean f) {}

  record WithText(int a, String text) {}

  record Positive(int value) {
    Positive {
      if (value <= 0) {
        throw new IllegalArgumentException("value is " + value + ", expected > 0");
      }
    }
  }

  private static <A extends Record> AttributeCodec<A> codec(Class<A> type) {
    return AttributeCodec.of(type, MethodHandles.lookup());
  }

  @Test
  @DisplayName("JAVA-3: a record's bytes are those of the C struct with the same fields")
  void layout() {
    AttributeCodec<Mixed> codec = codec(Mixed.class);
    // struct { bool; int32_t; int8_t; double; int16_t; int32_t; }: offsets 0, 4, 8, 16, 24, 28
    assertThat(codec.size()).isEqualTo(32);
    byte[] bytes =
        codec.encode(new Mixed(true, 0x01020304, (byte) -1, 1.0, (short) 5, Mode.HALVES));
    assertThat(HexFormat.of().formatHex(bytes))
        .isEqualTo(
            "01000000"
                + "04030201"
                + "ff00000000000000"
                + "000000000000f03f"
                + "05000000"
                + "01000000");
  }

  @Test
  @DisplayName("JAVA-3: a record comes back equal, NaN and negative zero included")
  void roundTrip() {
    AttributeCodec<Mixed> codec = codec(Mixed.class);
    for (double scale : new double[] {Double.NaN, -0.0, Double.MIN_VALUE, -1e300}) {
      Mixed mixed = new Mixed(false, -7, (byte) 3, scale, Short.MIN_VALUE, Mode.PAIRS);
      assertThat(codec.decode(codec.encode(mixed))).isEqualTo(mixed);
    }
  }

  @Test
  @DisplayName("OP-1: attributes of 40 bytes are accepted, of more are refused with the size")
  void sizeLimit() {
    assertThat(codec(Forty.class).size()).isEqualTo(40);
    assertThat(codec(NoAttributes.class).size()).isZero();
    assertThatThrownBy(() -> codec(FortyOne.class))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("FortyOne takes 48 bytes")
        .hasMessageContaining("at most 40");
  }

  @Test
  @DisplayName("JAVA-3: a component without counterpart in C is refused by name")
  void unknownComponent() {
    assertThatThrownBy(() -> codec(WithText.class))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("component text")
        .hasMessageContaining("String");
  }

  @Test
  @DisplayName(
      "JAVA-3: bytes of another size, an enum's unknown constant and a refusing record are told")
  void badBytes() {
    AttributeCodec<Mixed> codec = codec(Mixed.class);
    assertThatThrownBy(() -> codec.decode(new byte[8])).hasMessageContaining("takes 32 bytes");
    byte[] bytes = new byte[32];
    bytes[28] = 9;
    assertThatThrownBy(() -> codec.decode(bytes)).hasMessageContaining("no constant number 9");
    assertThatThrownBy(() -> codec(Positive.class).decode(new byte[4]))
        .hasMessageContaining("value is 0, expected > 0");
  }
}
