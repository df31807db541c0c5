package org.ggmlext.ext;

/**
 * Counters of a backend.
 *
 * @param planned graphs planned before their allocation
 * @param plannedLate graphs planned at compute: direct computes, and plans that no longer fitted
 * @param computed computes with at least one extension step
 * @param groups fused groups executed
 * @param singly fused groups that ran as single operations after all
 * @param planNanos time spent planning, in nanoseconds
 * @param workspaceBytes scratch memory that the backend's plans own now
 * @param recorded plans recorded as CUDA graphs
 * @param reused plans that took over the CUDA graph of an equal one
 * @param replayed computes that launched a recorded CUDA graph
 */
public record BackendStats(
    long planned,
    long plannedLate,
    long computed,
    long groups,
    long singly,
    long planNanos,
    long workspaceBytes,
    long recorded,
    long reused,
    long replayed) {}
