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
 */
public record BackendStats(
    long planned,
    long plannedLate,
    long computed,
    long groups,
    long singly,
    long planNanos,
    long workspaceBytes) {}
