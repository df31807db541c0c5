/**
 * Operators that the bundled kernel library {@code "cpu"} adds to ggml, as methods that make their
 * nodes: rotary position embeddings from given matrices, and linear layers in INT8.
 *
 * <p>Register the library first: {@code extensions.register(device, KernelLibrary.bundled("cpu"))}.
 * Shapes and types are checked when a node is made; what does not fit is refused with an {@link
 * IllegalArgumentException} that names the source, what it is and what was expected. A node is made
 * on the thread that owns its context; what computes it may be any.
 */
@NullMarked
package org.ggmlext.ext.ops;

import org.jspecify.annotations.NullMarked;
