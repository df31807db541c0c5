package org.ggmlext.ext;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What a kernel, a fusion rule and a graph optimiser have in common: the C descriptor's
 * counterpart.
 */
record Definition(
    String name,
    @Nullable String op,
    int priority,
    int flags,
    @Nullable Function<NodeInfo, Support> supports,
    @Nullable Function<NodeInfo, Support> preferred,
    @Nullable Matcher matcher,
    @Nullable GraphPass pass,
    @Nullable Preparation preparation,
    @Nullable Destruction destruction,
    @Nullable KernelBody body) {

  Prepared prepare(PrepareContext context) throws Exception {
    if (preparation != null) {
      return preparation.prepare(context);
    }
    return body == null ? Prepared.NOTHING : body.prepare(context);
  }

  void destroy(@Nullable Object state) throws Exception {
    if (destruction != null) {
      destruction.destroy(state);
    } else if (body != null) {
      body.destroy(state);
    }
  }
}
