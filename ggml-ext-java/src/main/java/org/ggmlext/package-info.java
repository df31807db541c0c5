/**
 * ggml for Java: libraries, devices, backends, tensors, graphs, schedulers and model files.
 *
 * <p>Shapes are in ggml's order, the fastest dimension first; strides are in bytes. Objects that
 * own native memory are {@link AutoCloseable}: closing one twice is harmless, closing it while
 * another thread uses it lets that use end first, and using it afterwards throws {@link
 * IllegalStateException}.
 */
@NullMarked
package org.ggmlext;

import org.jspecify.annotations.NullMarked;
