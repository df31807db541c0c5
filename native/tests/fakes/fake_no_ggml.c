// A library, but no ggml.

int fake_answer(void) { return 42; }
