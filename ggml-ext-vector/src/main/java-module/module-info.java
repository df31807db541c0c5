/** Help for kernels written with the Vector API. */
module org.ggmlext.vector {
  requires transitive org.ggmlext;
  requires jdk.incubator.vector;
  requires static org.jspecify;

  exports org.ggmlext.vector;
}
