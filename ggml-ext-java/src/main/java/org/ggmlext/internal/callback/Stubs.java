package org.ggmlext.internal.callback;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;

/**
 * One upcall stub for each kind of callback, for as long as the process lives: C may keep the
 * address of a stub beyond any registration. Which object is meant says the number in the user
 * data.
 */
public final class Stubs {
  /** A C pointer, passed as a number. */
  private static final MemoryLayout POINTER = JAVA_LONG;

  public static final MemorySegment INFER =
      make("infer", JAVA_INT, JAVA_INT, POINTER, POINTER, POINTER, POINTER);
  public static final MemorySegment SUPPORTS = make("supports", JAVA_INT, POINTER, POINTER);
  public static final MemorySegment PREFERRED = make("preferred", JAVA_INT, POINTER, POINTER);
  public static final MemorySegment MATCH = make("match", JAVA_INT, POINTER, JAVA_INT, POINTER);
  public static final MemorySegment OPTIMIZE = make("optimize", JAVA_INT, POINTER, POINTER);
  public static final MemorySegment PREPARE = make("prepare", JAVA_INT, POINTER, POINTER, POINTER);
  public static final MemorySegment RUN =
      make("run", JAVA_INT, POINTER, JAVA_INT, JAVA_INT, JAVA_INT, POINTER);
  public static final MemorySegment EXECUTE = make("execute", JAVA_INT, POINTER, POINTER);
  public static final MemorySegment DESTROY = makeVoid("destroy", POINTER, POINTER);
  public static final MemorySegment RELEASE_KERNEL = makeVoid("releaseKernel", POINTER);
  public static final MemorySegment RELEASE_OPERATOR = makeVoid("releaseOperator", POINTER);
  public static final MemorySegment LOG = makeVoid("logLine", JAVA_INT, POINTER, POINTER);
  public static final MemorySegment PARALLEL_TASK =
      make("parallelTask", JAVA_INT, POINTER, JAVA_INT, JAVA_INT);
  public static final MemorySegment ADD_REGISTRATION =
      make("addRegistration", JAVA_INT, POINTER, POINTER);

  private Stubs() {}

  private static MemorySegment make(String method, MemoryLayout result, MemoryLayout... arguments) {
    return stub(method, FunctionDescriptor.of(result, arguments));
  }

  private static MemorySegment makeVoid(String method, MemoryLayout... arguments) {
    return stub(method, FunctionDescriptor.ofVoid(arguments));
  }

  private static MemorySegment stub(String method, FunctionDescriptor descriptor) {
    try {
      MethodHandle target =
          MethodHandles.lookup().findStatic(Callbacks.class, method, descriptor.toMethodType());
      return Linker.nativeLinker().upcallStub(target, descriptor, Arena.global());
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(method, e);
    }
  }
}
