#pragma once

// The rotation of a group of 256 features by the Kronecker power of H4, as a fast transform: y = H4 x of four values
// is y[i] = (x[0] + x[1] + x[2] + x[3]) / 2 - x[3 - i], applied to each base-4 digit of the feature's number in
// turn, lowest first. The order of the additions is the CPU kernels', so the results are the same bits.

namespace ggml_ext_cuda {

constexpr int GROUP       = 256; // features
constexpr int GROUP_LANES = 16;  // threads of one warp that hold a group: 4 float4 each, features 64 * j + 4 * lane

__device__ inline void h4(float & a, float & b, float & c, float & d) {
    const float s  = __fadd_rn(__fadd_rn(a, b), __fadd_rn(c, d));
    const float y0 = __fmaf_rn(s, 0.5f, -d), y1 = __fmaf_rn(s, 0.5f, -c), y2 = __fmaf_rn(s, 0.5f, -b),
                y3 = __fmaf_rn(s, 0.5f, -a);
    a              = y0;
    b              = y1;
    c              = y2;
    d              = y3;
}

// All 32 lanes of a warp call it, each half with its own group; `shared` holds GROUP floats for every half warp of
// the block and is aligned to 256 bytes.
//
// Digits 0 and 3 lie within a thread's registers. For digits 1 and 2 a thread takes the 16 values of one (digit 0,
// digit 3) through shared memory, numbered by exclusive or with its quad: so no two quads meet in one bank, and H4
// does not notice (it pairs the same values whichever of them comes first).
__device__ inline void rotate_group(float4 (&v)[4], float4 * shared) {
    const int lane = threadIdx.x % GROUP_LANES, quad = threadIdx.x % 32 / 4, half = threadIdx.x / GROUP_LANES;
    float4 *  rows = shared + half * (GROUP / 4) + lane;

    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        h4(v[j].x, v[j].y, v[j].z, v[j].w);
        rows[16 * j] = v[j];
    }
    __syncwarp();

    // in bytes; the quad's three bits lie within the four that number the values
    const unsigned first = (half * GROUP + lane / 4 * 64 + lane % 4) * 4 + quad * 16;
    const auto     value = [&](int k) -> float & {
        return *reinterpret_cast<float *>(reinterpret_cast<char *>(shared) + (first ^ (16 * k)));
    };
    float r[16];
#pragma unroll
    for (int k = 0; k < 16; k++) {
        r[k] = value(k);
    }
#pragma unroll
    for (int k = 0; k < 16; k += 4) {
        h4(r[k], r[k + 1], r[k + 2], r[k + 3]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        h4(r[k], r[k + 4], r[k + 8], r[k + 12]);
    }
#pragma unroll
    for (int k = 0; k < 16; k++) {
        value(k) = r[k];
    }
    __syncwarp();

#pragma unroll
    for (int j = 0; j < 4; j++) {
        v[j] = rows[16 * j];
    }
    h4(v[0].x, v[1].x, v[2].x, v[3].x);
    h4(v[0].y, v[1].y, v[2].y, v[3].y);
    h4(v[0].z, v[1].z, v[2].z, v[3].z);
    h4(v[0].w, v[1].w, v[2].w, v[3].w);
}

} // namespace ggml_ext_cuda
