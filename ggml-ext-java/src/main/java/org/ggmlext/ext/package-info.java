/**
 * Operators, kernels, fusion rules and graph optimisers for stock ggml, written in Java or taken
 * from native kernel libraries.
 *
 * <p>{@link org.ggmlext.ext.Extensions} is the way in: it attaches the extension layer to a loaded
 * ggml and takes registrations. Each registration is a {@link org.ggmlext.ext.Registration}, which
 * withdraws it when closed.
 *
 * <p>Callbacks (inference, support queries, kernels, rules) may be called from any thread, several
 * at once, ggml's own threads included. What they get (views, tasks, graphs) is valid during the
 * call only. An exception that a callback throws becomes a failed status; it is the cause of what
 * {@code compute} throws.
 */
@NullMarked
package org.ggmlext.ext;

import org.jspecify.annotations.NullMarked;
