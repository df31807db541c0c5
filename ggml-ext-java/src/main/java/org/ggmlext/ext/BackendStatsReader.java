package org.ggmlext.ext;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_ext_backend_stats;
import org.ggmlext.bindings.ggml_ext_h;
import org.jspecify.annotations.Nullable;

/** Copies the counters of a backend out of the C library. */
final class BackendStatsReader {
  private BackendStatsReader() {}

  /** The counters of a backend that is extended. */
  static BackendStats stats(MemorySegment backend) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = ggml_ext_backend_stats.allocate(arena);
      ExtStatus.check(read(backend, stats));
      return copy(stats);
    }
  }

  /** The same; null if the backend is not extended. */
  static @Nullable BackendStats statsIfExtended(MemorySegment backend) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment stats = ggml_ext_backend_stats.allocate(arena);
      return read(backend, stats) == ggml_ext_h.GGML_EXT_STATUS_SUCCESS() ? copy(stats) : null;
    }
  }

  private static int read(MemorySegment backend, MemorySegment stats) {
    ggml_ext_backend_stats.struct_size(stats, stats.byteSize());
    return ggml_ext_h.ggml_ext_get_backend_stats(backend, stats);
  }

  private static BackendStats copy(MemorySegment stats) {
    return new BackendStats(
        ggml_ext_backend_stats.n_planned(stats),
        ggml_ext_backend_stats.n_planned_late(stats),
        ggml_ext_backend_stats.n_computed(stats),
        ggml_ext_backend_stats.n_groups(stats),
        ggml_ext_backend_stats.n_singly(stats),
        ggml_ext_backend_stats.plan_time_ns(stats),
        ggml_ext_backend_stats.workspace_size(stats),
        ggml_ext_backend_stats.n_recorded(stats),
        ggml_ext_backend_stats.n_reused(stats),
        ggml_ext_backend_stats.n_replayed(stats));
  }
}
