#include "bench.h"

#include <dnnl.hpp>
#include <omp.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace bench {

namespace {

// x [M, K] times w [N, K] transposed, scaled by column where there is a w_scale [N]; the weights are reordered once into the layout
// that oneDNN asks for.
std::function<void()> matmul(int64_t                 M,
                             int64_t                 N,
                             int64_t                 K,
                             dnnl::memory::data_type x_type,
                             dnnl::memory::data_type w_type,
                             dnnl::memory::data_type dst_type,
                             const void *            x,
                             const void *            w,
                             void *                  dst,
                             const float *           w_scale = nullptr) {
    using namespace dnnl;
    using tag = memory::format_tag;
    omp_set_num_threads(1);
    engine engine(engine::kind::cpu, 0);
    stream stream(engine);

    const memory::desc x_desc({M, K}, x_type, tag::ab), dst_desc({M, N}, dst_type, tag::ab);
    const memory::desc w_any({K, N}, w_type, tag::any), w_given({K, N}, w_type, tag::ba);
    constexpr int      by_column = 1 << 1;
    primitive_attr     attributes;
#if DNNL_VERSION_MAJOR >= 3
    if (w_scale != nullptr) {
        attributes.set_scales_mask(DNNL_ARG_WEIGHTS, by_column);
    }
    const matmul::primitive_desc primitive(engine, x_desc, w_any, dst_desc, attributes);
#else
    if (w_scale != nullptr) {
        attributes.set_output_scales(by_column, std::vector<float>(w_scale, w_scale + N));
    }
    const dnnl::matmul::primitive_desc primitive(dnnl::matmul::desc(x_desc, w_any, dst_desc), attributes, engine);
#endif
    memory given(w_given, engine, const_cast<void *>(w));
    memory packed(primitive.weights_desc(), engine);
    reorder(given, packed).execute(stream, given, packed);
    stream.wait();

    const dnnl::matmul              product(primitive);
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(x_desc, engine, const_cast<void *>(x))},
                                                 {DNNL_ARG_WEIGHTS, packed},
                                                 {DNNL_ARG_DST, memory(dst_desc, engine, dst)}};
#if DNNL_VERSION_MAJOR >= 3
    if (w_scale != nullptr) {
        arguments.insert({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                          memory(memory::desc({N}, memory::data_type::f32, tag::a), engine, const_cast<float *>(w_scale))});
    }
#endif
    return [=]() mutable {
        product.execute(stream, arguments);
        stream.wait();
    };
}

} // namespace

std::function<void()> onednn_f32(int64_t M, int64_t N, int64_t K, const float * x, const float * w, float * dst) {
    using type = dnnl::memory::data_type;
    return matmul(M, N, K, type::f32, type::f32, type::f32, x, w, dst);
}

std::function<void()> onednn_i8(int64_t M, int64_t N, int64_t K, const uint8_t * x, const int8_t * w, int32_t * dst) {
    using type = dnnl::memory::data_type;
    return matmul(M, N, K, type::u8, type::s8, type::s32, x, w, dst);
}

std::function<void()> onednn_i8(int64_t M, int64_t N, int64_t K, const int8_t * x, const int8_t * w, int32_t * dst) {
    using type = dnnl::memory::data_type;
    return matmul(M, N, K, type::s8, type::s8, type::s32, x, w, dst);
}

std::function<void()>
onednn_i8_scaled(int64_t M, int64_t N, int64_t K, const uint8_t * x, const int8_t * w, const float * w_scale, float * dst) {
    using type = dnnl::memory::data_type;
    return matmul(M, N, K, type::u8, type::s8, type::f32, x, w, dst, w_scale);
}

} // namespace bench
