// A ggml whose names of operations are not those of the operations that it makes.

static const char * const NAMES[] = {"NONE", "ADD", "VIEW", "CUSTOM", "MUL_MAT", 0};

const char * ggml_op_name(int op) { return NAMES[op]; }
