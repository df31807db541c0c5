package org.ggmlext.ext;

/**
 * What the layer found out about the loaded ggml.
 *
 * @param ggmlVersion "" where this ggml does not say
 * @param graphViews whether the layout of graphs is known; if not, there is no planning ahead:
 *     single nodes are extended, nothing is fused
 * @param note what was not found, and why; "" if all was
 */
public record AbiInfo(String ggmlVersion, boolean graphViews, String note) {}
