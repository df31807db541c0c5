package org.ggmlext.internal;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.ggmlext.bindings.ggml_abort_callback;
import org.jspecify.annotations.Nullable;

/**
 * Abort callbacks of all backends behind one upcall stub that lives as long as the process: native
 * code may hold it longer than a backend lives. {@code user_data} is the number of a slot; 0 and
 * numbers of freed slots mean "go on".
 */
final class AbortSlots {
  private static final ConcurrentHashMap<Long, Slot> SLOTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();

  private AbortSlots() {}

  static Slot newSlot() {
    Slot slot = new Slot(LAST.incrementAndGet());
    SLOTS.put(slot.number, slot);
    return slot;
  }

  static MemorySegment stub() {
    return Stub.ADDRESS;
  }

  private static boolean ask(MemorySegment userData) {
    Slot slot = SLOTS.get(userData.address());
    return slot != null && slot.ask();
  }

  /** Made when it is first needed. */
  private static final class Stub {
    static final MemorySegment ADDRESS =
        ggml_abort_callback.allocate(AbortSlots::ask, Arena.global());
  }

  /** The callback of one backend. */
  static final class Slot {
    private final long number;
    private volatile @Nullable BooleanSupplier callback;
    private volatile @Nullable Throwable thrown;

    private Slot(long number) {
      this.number = number;
    }

    MemorySegment userData() {
      return MemorySegment.ofAddress(number);
    }

    void set(@Nullable BooleanSupplier callback) {
      this.callback = callback;
      this.thrown = null;
    }

    @Nullable Throwable takeThrown() {
      Throwable taken = thrown;
      thrown = null;
      return taken;
    }

    void free() {
      SLOTS.remove(number);
    }

    private boolean ask() {
      BooleanSupplier asked = callback;
      if (asked == null) {
        return false;
      }
      try {
        return asked.getAsBoolean();
      } catch (Throwable e) {
        thrown = e;
        return true;
      }
    }
  }
}
