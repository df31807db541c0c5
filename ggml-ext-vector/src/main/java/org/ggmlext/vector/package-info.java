/**
 * Help for kernels written with the Vector API: arithmetic on rows of F32 elements, and row kernels
 * made of it. Needs {@code --add-modules jdk.incubator.vector}.
 */
@NullMarked
package org.ggmlext.vector;

import org.jspecify.annotations.NullMarked;
