package org.ggmlext.ext;

import java.util.List;

/** What a native kernel library registered on a device. Safe for use by several threads. */
public final class LibraryRegistration implements AutoCloseable {
  private final List<Registration> registrations;

  LibraryRegistration(List<Registration> registrations) {
    this.registrations = List.copyOf(registrations);
  }

  /** Its operators and kernels, in the order in which the library registered them. */
  public List<Registration> registrations() {
    return registrations;
  }

  boolean isOpen() {
    return registrations.stream().anyMatch(Registration::isOpen);
  }

  /**
   * Withdraws them in one step. Harmless if done before.
   *
   * @throws IllegalStateException if one is in use; all stay registered then, and this may be
   *     closed again later
   */
  @Override
  public void close() {
    Registration.close(registrations);
  }
}
