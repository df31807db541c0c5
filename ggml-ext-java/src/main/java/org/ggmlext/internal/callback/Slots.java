package org.ggmlext.internal.callback;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Java objects that C refers to by number. A number is never 0 and never used twice, so that a call
 * that comes too late finds nothing instead of a stranger. Reading takes no lock.
 */
final class Slots<T> {
  private record Entry<T>(long id, T value) {}

  private static final VarHandle ELEMENT = MethodHandles.arrayElementVarHandle(Entry[].class);

  private final String what;
  private final ArrayDeque<Integer> free = new ArrayDeque<>();
  private int used;
  private long generation;
  private volatile @Nullable Entry<T>[] entries = newArray(64);

  /** Slots of things that messages call {@code what}. */
  Slots(String what) {
    this.what = what;
  }

  @SuppressWarnings("unchecked")
  private static <T> @Nullable Entry<T>[] newArray(int length) {
    return (Entry<T>[]) new Entry<?>[length];
  }

  /** Keeps an object, and gives its number. */
  synchronized long add(T value) {
    Integer index = free.poll();
    int i = index == null ? used++ : index;
    if (i == entries.length) {
      entries = Arrays.copyOf(entries, 2 * i);
    }
    long id = ++generation << 32 | i;
    ELEMENT.setRelease(entries, i, new Entry<>(id, Objects.requireNonNull(value)));
    return id;
  }

  /** Forgets an object; null if it was forgotten before. */
  synchronized @Nullable T remove(long id) {
    T value = find(id);
    if (value != null) {
      ELEMENT.setRelease(entries, (int) id, null);
      free.add((int) id);
    }
    return value;
  }

  /** The object of a number, null if there is none any more. */
  @SuppressWarnings("unchecked")
  @Nullable T find(long id) {
    @Nullable Entry<T>[] current = entries;
    int index = (int) id;
    if (index < 0 || index >= current.length) {
      return null;
    }
    Entry<T> entry = (Entry<T>) ELEMENT.getAcquire(current, index);
    return entry != null && entry.id == id ? entry.value : null;
  }

  /** The object of a number. */
  T get(long id) {
    T value = find(id);
    if (value == null) {
      throw new IllegalStateException("a call came after the " + what + " was withdrawn");
    }
    return value;
  }
}
