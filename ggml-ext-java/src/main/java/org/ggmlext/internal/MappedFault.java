package org.ggmlext.internal;

import org.ggmlext.GgmlException;

/** What the VM makes of a fault in mapped memory: an {@link InternalError} that names nothing. */
public final class MappedFault {
  private MappedFault() {}

  /**
   * What is thrown in its place.
   *
   * @param what the file, as far as it is known
   */
  public static GgmlException whileReading(String what, InternalError fault) {
    return new GgmlException(
        "cannot read %s any more: was it cut short after it was opened? (%s)"
            .formatted(what, fault),
        fault);
  }
}
