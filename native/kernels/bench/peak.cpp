#include "bench.h"

#include "ggml-ext-kernels/common.h"

#include <cstring>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

namespace bench {

namespace {

constexpr int64_t ROUNDS = 100000;

bool isa_is(const char * name) {
    return std::strcmp(ggml_ext_cpu_isa(), name) == 0;
}

#if defined(__x86_64__)

// In assembler, or the compiler would merge equal chains. Twelve of them: more than latency times throughput on the
// cores that we know.
#    define CHAINS(step) \
        step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)

__attribute__((target("avx2,fma"))) void f32_avx2() {
    __m256       s[12] = {};
    const __m256 a = _mm256_set1_ps(1.0f), b = _mm256_set1_ps(1e-9f);
    for (int64_t i = 0; i < ROUNDS; i++) {
#    define STEP(c) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+x"(s[c]) : "x"(a), "x"(b));
        CHAINS(STEP)
#    undef STEP
    }
}

__attribute__((target("avx2"))) void i8_avx2() {
    __m256i s[12] = {};
    __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2), one = _mm256_set1_epi16(1), product;
    for (int64_t i = 0; i < ROUNDS; i++) {
#    define STEP(c)                                                                          \
        __asm__ volatile("vpmaddubsw %2, %3, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0" \
                         : "+x"(s[c]), "=&x"(product)                                        \
                         : "x"(a), "x"(b), "x"(one));
        CHAINS(STEP)
#    undef STEP
    }
}

__attribute__((target("avx512f"))) void f32_avx512() {
    __m512       s[12] = {};
    const __m512 a = _mm512_set1_ps(1.0f), b = _mm512_set1_ps(1e-9f);
    for (int64_t i = 0; i < ROUNDS; i++) {
#    define STEP(c) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(s[c]) : "v"(a), "v"(b));
        CHAINS(STEP)
#    undef STEP
    }
}

__attribute__((target("avx512f,avx512vnni"))) void i8_avx512() {
    __m512i       s[12] = {};
    const __m512i a = _mm512_set1_epi32(0x01010101), b = _mm512_set1_epi32(0x02020202);
    for (int64_t i = 0; i < ROUNDS; i++) {
#    define STEP(c) __asm__ volatile("vpdpbusd %1, %2, %0" : "+v"(s[c]) : "v"(a), "v"(b));
        CHAINS(STEP)
#    undef STEP
    }
}

__attribute__((target("amx-tile,amx-int8"))) void i8_amx() {
    alignas(64) uint8_t config[64] = {1};
    for (int tile = 0; tile < 8; tile++) {
        config[16 + 2 * tile] = 64; // bytes of a row
        config[48 + tile]     = 16; // rows
    }
    __asm__ volatile("" ::: "memory"); // GCC's intrinsic does not say that it reads all of it
    _tile_loadconfig(config);
    _tile_zero(4);
    _tile_zero(5);
    for (int64_t i = 0; i < ROUNDS; i++) {
        _tile_dpbssd(0, 4, 5);
        _tile_dpbssd(1, 4, 5);
        _tile_dpbssd(2, 4, 5);
        _tile_dpbssd(3, 4, 5);
    }
    _tile_release();
}

#endif

} // namespace

peak peak_f32() {
#if defined(__x86_64__)
    const bool wide = isa_is("avx512") || isa_is("amx");
    return {wide ? f32_avx512 : f32_avx2, static_cast<double>(ROUNDS) * 12 * (wide ? 16 : 8)};
#else
    return {[] {}, 0};
#endif
}

peak peak_i8() {
#if defined(__x86_64__)
    if (isa_is("amx")) {
        return {i8_amx, static_cast<double>(ROUNDS) * 4 * 16 * 16 * 64};
    }
    const bool wide = isa_is("avx512");
    return {wide ? i8_avx512 : i8_avx2, static_cast<double>(ROUNDS) * 12 * (wide ? 64 : 32)};
#else
    return {[] {}, 0};
#endif
}

} // namespace bench
