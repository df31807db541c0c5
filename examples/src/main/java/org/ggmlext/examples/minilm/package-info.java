/**
 * Sentence embeddings with MiniLM-L6-v2, computed by stock ggml with extensions written in Java.
 */
@NullMarked
package org.ggmlext.examples.minilm;

import org.jspecify.annotations.NullMarked;
