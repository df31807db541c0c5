package org.ggmlext.ext;

/**
 * Counters of a kernel or rule since its registration.
 *
 * @param supported support queries answered yes
 * @param unsupported support queries answered no
 * @param planned steps frozen into plans
 * @param executed steps executed
 * @param failed callbacks that failed
 * @param refused matches that were not legal
 * @param nanos time of executed steps in nanoseconds, on the thread of task 0; counted only while
 *     {@linkplain Extensions#setProfiling profiling} is on
 * @param timed how many of {@code executed} that is the time of
 */
public record KernelStats(
    long supported,
    long unsupported,
    long planned,
    long executed,
    long failed,
    long refused,
    long nanos,
    long timed) {}
