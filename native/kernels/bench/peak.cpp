#include "bench.h"

#include "ggml-ext-kernels/common.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

namespace {

constexpr int64_t ROUNDS = 100000;

bool isa_is(const char * name) { return std::strcmp(ggml_ext_cpu_isa(), name) == 0; }

#if defined(__x86_64__)

// Twelve chains: more than latency times throughput on the cores that we know.
#define CHAINS(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)

__attribute__((target("avx2,fma"))) void f32_avx2() {
    __m256 s[12];
    for (__m256 & v : s) { // different for all the compiler knows, or equal chains would become one
        v = __m256{};
        __asm__ volatile("" : "+x"(v));
    }
    __m256 a = _mm256_set1_ps(1.0f), b = _mm256_set1_ps(1e-9f);
    for (int64_t i = 0; i < ROUNDS; i++) {
#define STEP(c) s[c] = _mm256_fmadd_ps(a, b, s[c]);
        CHAINS(STEP)
#undef STEP
        __asm__ volatile("" : "+x"(a), "+x"(b));
    }
    for (__m256 & v : s) {
        __asm__ volatile("" : "+x"(v));
    }
}

__attribute__((target("avx2"))) void i8_avx2() {
    __m256i s[12];
    for (__m256i & v : s) { // different for all the compiler knows, or equal chains would become one
        v = __m256i{};
        __asm__ volatile("" : "+x"(v));
    }
    __m256i a = _mm256_set1_epi16(1), b = _mm256_set1_epi16(2);
    for (int64_t i = 0; i < ROUNDS; i++) {
#define STEP(c)                                                                                                        \
    {                                                                                                                  \
        __m256i p = _mm256_madd_epi16(a, b);                                                                           \
        __asm__("" : "+x"(p));                                                                                         \
        s[c] = _mm256_add_epi32(s[c], p);                                                                              \
    }
        CHAINS(STEP)
#undef STEP
        __asm__ volatile("" : "+x"(a), "+x"(b));
    }
    for (__m256i & v : s) {
        __asm__ volatile("" : "+x"(v));
    }
}

__attribute__((target("avx512f"))) void f32_avx512() {
    __m512 s[12];
    for (__m512 & v : s) { // different for all the compiler knows, or equal chains would become one
        v = __m512{};
        __asm__ volatile("" : "+v"(v));
    }
    __m512 a = _mm512_set1_ps(1.0f), b = _mm512_set1_ps(1e-9f);
    for (int64_t i = 0; i < ROUNDS; i++) {
#define STEP(c) s[c] = _mm512_fmadd_ps(a, b, s[c]);
        CHAINS(STEP)
#undef STEP
        __asm__ volatile("" : "+v"(a), "+v"(b));
    }
    for (__m512 & v : s) {
        __asm__ volatile("" : "+v"(v));
    }
}

__attribute__((target("avx512f,avx512vnni"))) void i8_avx512() {
    __m512i s[12];
    for (__m512i & v : s) { // different for all the compiler knows, or equal chains would become one
        v = __m512i{};
        __asm__ volatile("" : "+v"(v));
    }
    __m512i a = _mm512_set1_epi32(0x01010101), b = _mm512_set1_epi32(0x02020202);
    for (int64_t i = 0; i < ROUNDS; i++) {
#define STEP(c) s[c] = _mm512_dpbusd_epi32(s[c], a, b);
        CHAINS(STEP)
#undef STEP
        __asm__ volatile("" : "+v"(a), "+v"(b));
    }
    for (__m512i & v : s) {
        __asm__ volatile("" : "+v"(v));
    }
}

#endif

} // namespace

peak peak_f32() {
#if defined(__x86_64__)
    const bool wide = isa_is("avx512");
    return {wide ? f32_avx512 : f32_avx2, static_cast<double>(ROUNDS) * 12 * (wide ? 16 : 8)};
#else
    return {[] {}, 0};
#endif
}

peak peak_i8() {
#if defined(__x86_64__)
    const bool wide = isa_is("avx512");
    return {wide ? i8_avx512 : i8_avx2, static_cast<double>(ROUNDS) * 12 * (wide ? 64 : 16)};
#else
    return {[] {}, 0};
#endif
}

} // namespace bench
