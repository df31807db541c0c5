/** ggml's own binaries; a module so that run-time images can hold them. */
module org.ggmlext.stock {}
