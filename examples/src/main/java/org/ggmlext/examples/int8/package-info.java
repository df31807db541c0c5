/** A converter from F32 weights to INT8 checkpoints. */
@NullMarked
package org.ggmlext.examples.int8;

import org.jspecify.annotations.NullMarked;
