#include "plan/plan.h"

#include "plan/inject.h"
#include "support/status.h"

#include <algorithm>

namespace ggml_ext::plan {

step::~step() {
    if (k->desc.destroy != nullptr && prepared.state != nullptr) {
        k->desc.destroy(prepared.state, k->desc.user_data);
    }
    k->n_plan_steps.fetch_sub(1);
}

int check_prepared(const ggml_ext_prepared & prepared) {
    constexpr int32_t MOST_PHASES = 1 << 16;
    if (prepared.n_phases < 1 || prepared.n_phases > MOST_PHASES || prepared.n_tasks < 0) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "n_phases is %d and n_tasks %d, expected 1 to %d and at least 0", prepared.n_phases,
                    prepared.n_tasks, MOST_PHASES);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

plan::~plan() {
    if (leaf != nullptr && !injected) {
        leaf_pool::get().give_back(leaf);
    }
}

void refusal_list::add(int node, const std::string & kernel, const char * reason) {
    constexpr size_t LATEST = 8; // several kernels may take turns
    const size_t     oldest = texts_.size() - std::min(texts_.size(), LATEST);
    for (size_t i = texts_.size(); i-- > oldest;) {
        if (texts_[i].reason == reason && texts_[i].kernel == kernel) {
            entries_.push_back({node, i});
            return;
        }
    }
    entries_.push_back({node, texts_.size()});
    texts_.push_back({kernel, reason});
}

} // namespace ggml_ext::plan
