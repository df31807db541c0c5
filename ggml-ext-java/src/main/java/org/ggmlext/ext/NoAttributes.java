package org.ggmlext.ext;

/** The attributes of an operator that has none. */
public record NoAttributes() {
  /** The one value that is needed. */
  public static final NoAttributes INSTANCE = new NoAttributes();
}
