package org.ggmlext.bindings;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.Nullable;

/**
 * Where the generated classes find their functions. Whoever loads the libraries hands them over by
 * {@link #set} before the first call.
 *
 * <p>A function is looked up when it is first called, and keeps its address from then on. A
 * function that the loaded library lacks (an older ggml, or the CPU backend's own functions where
 * backends are separate libraries) therefore does no harm until it is called; it then throws a
 * {@link LinkageError} that names it. To ask beforehand, use {@link #find}.
 *
 * <p>Safe for use by several threads.
 */
@NullMarked
public final class GgmlLookup implements SymbolLookup {
  /** The functions of ggml's own headers. */
  public static final GgmlLookup GGML = new GgmlLookup("ggml");

  /** The functions of {@code ggml-ext.h}. */
  public static final GgmlLookup GGML_EXT = new GgmlLookup("ggml-ext");

  private final String library;
  private @Nullable SymbolLookup symbols;
  private boolean used;

  GgmlLookup(String library) {
    this.library = library;
  }

  /**
   * Sets the libraries to look into.
   *
   * @param symbols finds the addresses of functions; they must stay valid until the process ends
   * @throws IllegalStateException if functions were already found through another lookup: they
   *     cannot be moved to another copy of the library
   */
  public synchronized void set(SymbolLookup symbols) {
    Objects.requireNonNull(symbols, "symbols");
    if (used && symbols != this.symbols) {
      throw new IllegalStateException(
          "functions of " + library + " are already in use; a process can use only one copy of it");
    }
    this.symbols = symbols;
  }

  /**
   * Finds a function.
   *
   * @return the function's address, or empty if the library has no function of this name
   * @throws IllegalStateException if no library has been set
   */
  @Override
  public synchronized Optional<MemorySegment> find(String name) {
    if (symbols == null) {
      throw new IllegalStateException(
          name + " is asked for, but " + library + " is not loaded yet");
    }
    Optional<MemorySegment> address = symbols.find(name);
    used |= address.isPresent();
    return address;
  }

  /**
   * Finds a function that must be there.
   *
   * @throws UnsatisfiedLinkError if the library has no function of this name, or is not loaded; an
   *     error, so that it leaves a class initializer as it is
   */
  @Override
  public MemorySegment findOrThrow(String name) {
    try {
      return find(name)
          .orElseThrow(
              () -> new UnsatisfiedLinkError("the loaded " + library + " has no function " + name));
    } catch (IllegalStateException e) {
      throw new UnsatisfiedLinkError(e.getMessage());
    }
  }
}
