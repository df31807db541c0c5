#ifndef GGML_EXT_CPU_OPS_H
#define GGML_EXT_CPU_OPS_H

//
// Operators of the kernel library ggml-ext-cpu: names, sources, attributes. Make nodes with ggml_ext_op_create.
// Shapes in ggml order (ne[0] is the fastest dimension).
//

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

//
// sd.quantize_i8_convrot.v1(X)
//
// X [K, M, ...] F32 with evenly spaced rows, K a multiple of the group. Each group of `group` features is multiplied by the n-th
// Kronecker power of H4 = 1/2 * [[1,1,1,-1],[1,1,-1,1],[1,-1,1,1],[-1,1,1,1]], group = 4^n; then
//   scale[m] = max_k |y[m][k]| / 127;  q[m][k] = y[m][k] * (1 / scale[m]), rounded half to even, clamped to [-127, 127]
// A row of zeros has scale 0 and zeros; a row with NaN or infinity has scale NaN and zeros.
//
// Result: the packed tensor, I8 [K * P + 4 * M] with M all rows of X and P = M rounded up to a multiple of four: P rows of K bytes
// (those beyond M are zero), then M F32 scales.
//
#define GGML_EXT_OP_QUANTIZE_I8_CONVROT "sd.quantize_i8_convrot.v1"

struct ggml_ext_quantize_i8_convrot_attrs {
    int32_t group; // 1, 4, 16, 64 or 256
};

//
// sd.linear_i8.v1(W, X, [W_scale], [X_scale], [bias])
//
//   Y[m][n] = float(sum_k X[m][k] * W[n][k]) * X_scale[m] * W_scale[n] + bias[n]
// The sum is exact in int32 (K at most 131071); then come the float operations in this order, each rounded on its own. A scale or
// a bias that is not there is left out. The optional sources that are there follow in this order; `sources` says which they are.
//
//   W        I8 [K, N], dense rows
//   X        I8  [K, M, ...], evenly spaced rows
//            F32 [K, M, ...], evenly spaced rows; quantised row by row as above with group 1; no X_scale
//            packed: I8 [K * P + 4 * M] of sd.quantize_i8_convrot.v1, where packed_rows = M; no X_scale
//   W_scale  F32, contiguous: [N], [1, N], or [1] for all columns
//   X_scale  F32, contiguous: [M], [1, M], or [1] for all rows; M counts the rows of all dimensions
//   bias     F32 [N], contiguous
//
// Result: F32 [N, M, ...]; of a packed X [N, packed_rows]. It may share memory with any source.
//
#define GGML_EXT_OP_LINEAR_I8 "sd.linear_i8.v1"

enum ggml_ext_linear_i8_source {
    GGML_EXT_LINEAR_I8_W_SCALE = 1 << 0,
    GGML_EXT_LINEAR_I8_X_SCALE = 1 << 1,
    GGML_EXT_LINEAR_I8_BIAS    = 1 << 2,
};

struct ggml_ext_linear_i8_attrs {
    int32_t sources;     // enum ggml_ext_linear_i8_source
    int32_t packed_rows; // 0: X is not packed
};

//
// sd.rope_apply.v1(x, pe)
//
//   x   F32 [d_head, n_head, L, N]; elements of a row successive, any other strides
//   pe  F32 [2, 2, P, L]: for each position and pair the matrix [[cos, -sin], [sin, cos]], its four floats successive; the same for
//       all heads and all of N
// Pair i is (first + 2i, first + 2i + 1), or with GGML_EXT_ROPE_SPLIT_HALF (first + i, first + i + P). What lies outside
// [first, first + 2P) is copied.
//
// Result: F32 [d_head, n_head, L, N], contiguous.
//
#define GGML_EXT_OP_ROPE_APPLY "sd.rope_apply.v1"

enum ggml_ext_rope_pairs {
    GGML_EXT_ROPE_INTERLEAVED = 0,
    GGML_EXT_ROPE_SPLIT_HALF  = 1,
};

struct ggml_ext_rope_apply_attrs {
    int32_t pairs; // enum ggml_ext_rope_pairs
    int32_t first; // first feature that is rotated, even
};

#ifdef __cplusplus
}
#endif

#endif
