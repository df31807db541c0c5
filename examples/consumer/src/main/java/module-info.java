/** A module that uses ggml-ext. */
module org.example.snake {
  requires org.ggmlext;
}
