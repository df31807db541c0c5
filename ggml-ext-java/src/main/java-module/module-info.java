/** ggml for Java, and operators, kernels and fusion rules for it. */
module org.ggmlext {
  requires org.ggmlext.bindings;
  requires com.fasterxml.jackson.core;
  requires jdk.jfr;
  requires org.slf4j;
  requires static org.jspecify;

  exports org.ggmlext;
  exports org.ggmlext.ext;
  exports org.ggmlext.ext.ops;
  exports org.ggmlext.kit;
}
