/** What the layer costs and what it gains: benchmarks that print both sides and the ratio. */
@NullMarked
package org.ggmlext.benchmarks;

import org.jspecify.annotations.NullMarked;
