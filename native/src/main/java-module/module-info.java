/** libggml-ext and its kernel libraries; a module so that run-time images can hold them. */
@SuppressWarnings("module") // 64 is no version
module org.ggmlext.natives.linux.x86_64 {}
