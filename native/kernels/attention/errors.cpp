#include "error_table.h"
#include "problem.h"
#include "reference.h"

void attention_errors() {
    table_head("attention");
    const int64_t shapes[][3] = {{16, 16, 32}, {128, 128, 32}, {512, 512, 64}, {64, 4096, 128}};
    for (const auto & [queries, keys, d] : shapes) {
        attention_problem p(queries, keys, d, 1);
        p.run();
        std::vector<std::vector<double>> k, v;
        for (int64_t j = 0; j < keys; j++) {
            k.emplace_back(&p.k[static_cast<size_t>(j * d)], &p.k[static_cast<size_t>(j * d)] + d);
            v.emplace_back(&p.v[static_cast<size_t>(j * d)], &p.v[static_cast<size_t>(j * d)] + d);
        }
        // relative to the row's largest value: single values may be near zero
        test::error e;
        for (int64_t i = 0; i < queries; i++) {
            const float * q        = &p.q[static_cast<size_t>(i * d)];
            const auto    expected = reference::attention({q, q + d}, k, v, p.args.scale, {});
            double        most     = 0;
            for (double o : expected) {
                most = std::fmax(most, std::fabs(o));
            }
            for (int64_t c = 0; c < d; c++) {
                const double error = std::fabs(p.dst[static_cast<size_t>(i * d + c)] - expected[static_cast<size_t>(c)]);
                e.absolute         = std::fmax(e.absolute, error);
                e.relative         = std::fmax(e.relative, error / most);
            }
        }
        table_row("%ld queries, %ld keys, d=%ld", {queries, keys, d}, e);
    }
}
