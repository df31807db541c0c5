package org.ggmlext.benchmarks;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.TimeUnit;
import org.ggmlext.Ggml;
import org.ggmlext.ext.Extensions;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.CompilerControl;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** What a call costs: Java to Java, Java to C plain and critical, C to C, C to Java. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CallBenchmark {
  /** Calls that C makes for each that Java makes, so that the latter does not count. */
  static final int REPEATS = 10_000;

  private static final FunctionDescriptor ADD =
      FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final FunctionDescriptor INCREMENT = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG);

  private static final MethodHandle PLAIN;
  private static final MethodHandle CRITICAL;
  private static final MethodHandle REPEAT;
  private static final MemorySegment C_FUNCTION;
  private static final MemorySegment JAVA_FUNCTION;

  static {
    Extensions.attach(Ggml.load());
    PLAIN = BenchmarkLibrary.function("bench_add", ADD);
    CRITICAL = BenchmarkLibrary.function("bench_add", ADD, Linker.Option.critical(false));
    REPEAT =
        BenchmarkLibrary.function(
            "bench_repeat", FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_LONG));
    C_FUNCTION = BenchmarkLibrary.address("bench_increment");
    try {
      MethodHandle increment =
          MethodHandles.lookup()
              .findStatic(
                  CallBenchmark.class, "increment", MethodType.methodType(long.class, long.class));
      JAVA_FUNCTION = Linker.nativeLinker().upcallStub(increment, INCREMENT, Arena.global());
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private long a = 20;
  private long b = 22;

  @Benchmark
  public long javaToJava() {
    return add(a, b);
  }

  @CompilerControl(CompilerControl.Mode.DONT_INLINE)
  private static long add(long a, long b) {
    return a + b;
  }

  @Benchmark
  public long javaToC() throws Throwable {
    return (long) PLAIN.invokeExact(a, b);
  }

  @Benchmark
  public long javaToCCritical() throws Throwable {
    return (long) CRITICAL.invokeExact(a, b);
  }

  @Benchmark
  @OperationsPerInvocation(REPEATS)
  public long cToC() throws Throwable {
    return (long) REPEAT.invokeExact(C_FUNCTION, (long) REPEATS);
  }

  @Benchmark
  @OperationsPerInvocation(REPEATS)
  public long cToJava() throws Throwable {
    return (long) REPEAT.invokeExact(JAVA_FUNCTION, (long) REPEATS);
  }

  static long increment(long value) {
    return value + 1;
  }
}
