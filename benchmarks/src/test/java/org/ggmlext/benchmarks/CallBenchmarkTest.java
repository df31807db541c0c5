package org.ggmlext.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class CallBenchmarkTest {
  private final CallBenchmark calls = new CallBenchmark();

  @Test
  @DisplayName("Every way to add gives the same sum")
  void downcalls() throws Throwable {
    assertThat(calls.javaToJava()).isEqualTo(42);
    assertThat(calls.javaToC()).isEqualTo(42);
    assertThat(calls.javaToCCritical()).isEqualTo(42);
  }

  @Test
  @DisplayName("C calls the Java function as often as the C function, with the same result")
  void upcalls() throws Throwable {
    long expected = CallBenchmark.REPEATS * (CallBenchmark.REPEATS + 1L) / 2;
    assertThat(calls.cToC()).isEqualTo(expected);
    assertThat(calls.cToJava()).isEqualTo(expected);
  }
}
