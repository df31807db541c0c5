/**
 * The one border over which C calls Java: upcall stubs, the table of Java objects behind them, and
 * what happens to exceptions.
 */
@NullMarked
package org.ggmlext.internal.callback;

import org.jspecify.annotations.NullMarked;
