// A ggml that lacks nearly all functions.

void * ggml_init(void) { return 0; }
void   ggml_free(void * ctx) { (void) ctx; }
