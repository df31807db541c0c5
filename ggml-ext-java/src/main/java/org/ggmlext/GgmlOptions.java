package org.ggmlext;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Where to find ggml and what to load.
 *
 * @param home the folder that holds ggml's libraries; null: found in the order that {@link
 *     Ggml#load(GgmlOptions)} tells
 * @param loadBackends whether the backends in that folder (CPU, CUDA, ...) are loaded as well;
 *     without them there may be no device
 */
public record GgmlOptions(@Nullable Path home, boolean loadBackends) {
  /** ggml found in the usual order, with all its backends. */
  public static GgmlOptions defaults() {
    return new GgmlOptions(null, true);
  }

  /** ggml from this folder, with all its backends. */
  public static GgmlOptions at(Path home) {
    return new GgmlOptions(home, true);
  }
}
