package org.ggmlext.internal;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.ggmlext.bindings.ggml_backend_sched_eval_callback;
import org.jspecify.annotations.Nullable;

/**
 * Evaluation callbacks of all schedulers behind one upcall stub that lives as long as the process.
 * {@code user_data} is the number of a slot; freed slots observe nothing.
 */
public final class EvalSlots {
  private static final ConcurrentHashMap<Long, Slot> SLOTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();

  private EvalSlots() {}

  /** What a slot calls. */
  @FunctionalInterface
  public interface Callback {
    /** ggml's callback: with {@code ask} whether to observe, without it whether to go on. */
    boolean call(long tensor, boolean ask);
  }

  /** A new slot with no callback. */
  public static Slot newSlot() {
    Slot slot = new Slot(LAST.incrementAndGet());
    SLOTS.put(slot.number, slot);
    return slot;
  }

  /** The stub that goes with every slot's user data. */
  public static MemorySegment stub() {
    return Stub.ADDRESS;
  }

  private static boolean receive(MemorySegment tensor, boolean ask, MemorySegment userData) {
    Slot slot = SLOTS.get(userData.address());
    return slot == null ? !ask : slot.call(tensor.address(), ask);
  }

  /** Made when it is first needed. */
  private static final class Stub {
    static final MemorySegment ADDRESS =
        ggml_backend_sched_eval_callback.allocate(EvalSlots::receive, Arena.global());
  }

  /** The callback of one scheduler. */
  public static final class Slot {
    private final long number;
    private volatile @Nullable Callback callback;
    private volatile @Nullable Throwable thrown;

    private Slot(long number) {
      this.number = number;
    }

    /** What identifies this slot to the stub. */
    public MemorySegment userData() {
      return MemorySegment.ofAddress(number);
    }

    /** Sets the callback. */
    public void set(@Nullable Callback callback) {
      this.callback = callback;
    }

    /** Whether there is a callback. */
    public boolean isSet() {
      return callback != null;
    }

    /** What the callback threw since this was asked last. */
    public @Nullable Throwable takeThrown() {
      Throwable taken = thrown;
      thrown = null;
      return taken;
    }

    /** Forgets the slot; late calls observe nothing. */
    public void free() {
      SLOTS.remove(number);
    }

    private boolean call(long tensor, boolean ask) {
      Callback called = callback;
      if (called == null) {
        return !ask;
      }
      if (thrown != null) {
        // Ask for every node, so that the next one can stop.
        return ask;
      }
      try {
        return called.call(tensor, ask);
      } catch (Throwable e) {
        thrown = e;
        return ask;
      }
    }
  }
}
