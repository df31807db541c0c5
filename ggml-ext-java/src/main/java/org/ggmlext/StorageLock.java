package org.ggmlext;

import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Orders accesses to tensors' data against taking their memory away: a scheduler's next allocation, a
 * reset, a close. Accesses share it; taking away is a short exclusive step.
 */
final class StorageLock {
  private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();

  private StorageLock() {}

  static void beginAccess() {
    LOCK.readLock().lock();
  }

  static void endAccess() {
    LOCK.readLock().unlock();
  }

  static void beginChange() {
    LOCK.writeLock().lock();
  }

  static void endChange() {
    LOCK.writeLock().unlock();
  }
}
