#include "error_table.h"
#include "ggml-ext-kernels/rope.h"
#include "reference.h"
#include "support.h"

void rope_errors() {
    table_head("rope (ggml's angles, d = 128; relative: to the largest output)");
    for (int norm : {0, 1}) {
        for (int32_t position : {10, 100, 1000, 10000}) {
            const auto                     x = test::uniform(128, 1), weight = test::uniform(128, 2, 0.5f, 2);
            std::vector<float>             dst(128), scratch(3 * 128);
            const ggml_ext_cpu_rope_angles angles = {&position, nullptr, 4096, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f};
            ggml_ext_cpu_rope_args         a      = {};
            a.d_head = a.d_rot = 128;
            a.n_head = a.L = a.N = 1;
            a.pairs              = GGML_EXT_CPU_ROPE_SPLIT_HALF;
            a.x                  = x.data();
            a.dst                = dst.data();
            a.angles             = &angles;
            a.norm               = norm;
            a.eps                = 1e-6f;
            a.weight             = weight.data();
            ggml_ext_cpu_rope(&a, scratch.data(), scratch.size() * 4, 0, 1);
            std::vector<double> y =
                norm ? reference::normed(x.data(), 128, 1e-6f, weight.data()) : std::vector<double>(x.begin(), x.end());
            double largest = 0;
            for (int64_t i = 0; i < 64; i++) {
                reference::rotate(y, a, i, reference::rotation(angles, 128, position, i));
            }
            test::error e;
            for (size_t i = 0; i < 128; i++) {
                e.absolute = std::fmax(e.absolute, std::fabs(dst[i] - y[i]));
                largest    = std::fmax(largest, std::fabs(y[i]));
            }
            e.relative = e.absolute / largest;
            table_row(norm ? "RMSNorm + weight + rope, position %ld" : "rope, position %ld", {position}, e);
        }
    }
}
