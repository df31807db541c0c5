/** ggml's C interface and that of ggml-ext, as jextract binds them. */
module org.ggmlext.bindings {
  requires static org.jspecify;

  exports org.ggmlext.bindings;
}
