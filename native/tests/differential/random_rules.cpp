#include "differential/random_rules.h"

#include "differential/random_kernel.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <stdexcept>

namespace ggml_ext::test {

struct random_rules::rule {
    uint64_t                seed = 0;
    std::string             name;
    std::string             op; // "": matches begin at any node
    ggml_backend *          worker            = nullptr;
    uint64_t                eagerness         = 0; // percent of the nodes at which it wants to match, or that it overrides
    bool                    wild              = false; // asks for groups without looking at consumers
    bool                    through_workspace = false;
    size_t                  extra_workspace   = 0;
    int                     n_tasks           = 0;
    int                     n_delays          = 0; // tried in each graph
    rule_counts             counts;
    ggml_ext_registration * handle = nullptr;
};

namespace {

using rule = random_rules::rule;

const char * const overridden[] = {"SCALE", "ADD", "MUL", "SUB", "RMS_NORM", "NORM", "UNARY", "MUL_MAT", "SOFT_MAX", "CONT", "GLU", "CONCAT"};

uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6))) * 0xbf58476d1ce4e5b9ull;
    h          = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    return h ^ (h >> 31);
}

// the same for each question about the same node
int32_t wants_node(const ggml_ext_node * node, void * user_data, uint64_t question) {
    const rule & r = *static_cast<rule *>(user_data);
    uint64_t     h = mix(r.seed, question);
    for (const char * c = node->op; *c != '\0'; ++c) {
        h = mix(h, static_cast<uint64_t>(*c));
    }
    return mix(h, static_cast<uint64_t>(node->dst->ne[0])) % 100 < r.eagerness;
}

int32_t match(const ggml_ext_graph * graph, int32_t first, void * user_data) {
    rule &         r       = *static_cast<rule *>(user_data);
    const int      n_nodes = ggml_ext_graph_n_nodes(graph);
    const uint64_t h       = mix(mix(r.seed, static_cast<uint64_t>(first)), static_cast<uint64_t>(n_nodes));
    if (h % 100 >= r.eagerness) {
        return 0;
    }
    ++r.counts.n_matches;
    const int wanted = 2 + static_cast<int>((h >> 20) % 5);
    if (r.wild) {
        return wanted;
    }
    int n = 1;
    while (n < wanted && first + n < n_nodes && ggml_ext_graph_use_count(graph, first + n - 1) > 0) {
        ++n;
    }
    for (; n > 1; --n) { // the last node owns its storage, or is a copy
        const ggml_ext_node * last = ggml_ext_graph_node(graph, first + n - 1);
        if (last->dst->view_src == nullptr || std::strcmp(last->op, "CPY") == 0) {
            break;
        }
    }
    return n > 1 ? n : 0;
}

int optimize(ggml_ext_graph * graph, void * user_data) {
    rule &          r = *static_cast<rule *>(user_data);
    const int       n = ggml_ext_graph_n_nodes(graph);
    std::mt19937_64 random(mix(r.seed, static_cast<uint64_t>(n)));
    for (int i = 0; i < r.n_delays; ++i) {
        const int first  = static_cast<int>(random() % static_cast<uint64_t>(n));
        const int count  = 1 + static_cast<int>(random() % 4);
        const int before = first + count + static_cast<int>(random() % 12);
        const int status = ggml_ext_graph_delay(graph, first, count, before);
        ++(status == GGML_EXT_STATUS_SUCCESS ? r.counts.n_delays : r.counts.n_delays_refused);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * user_data) {
    const rule & r      = *static_cast<rule *>(user_data);
    auto         copy   = std::make_unique<group_copy>(*params, r.through_workspace);
    out->workspace_size = copy->workspace_size() + r.extra_workspace;
    out->n_phases       = r.through_workspace ? 2 : 1;
    out->n_tasks        = r.n_tasks;
    out->state          = copy.release();
    return GGML_EXT_STATUS_SUCCESS;
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    auto & copy = *static_cast<group_copy *>(params->state);
    if (phase == 0) {
        return ith == 0 ? copy.compute(*params, static_cast<rule *>(user_data)->worker) : static_cast<int>(GGML_EXT_STATUS_SUCCESS);
    }
    copy.copy_out(*params, ith, nth);
    return GGML_EXT_STATUS_SUCCESS;
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const rule & r      = *static_cast<rule *>(user_data);
    const int    status = run(params, 0, 0, 1, user_data);
    return status == GGML_EXT_STATUS_SUCCESS && r.through_workspace ? run(params, 1, 0, 1, user_data) : status;
}

void destroy(void * state, void *) {
    delete static_cast<group_copy *>(state);
}

} // namespace

random_rules::random_rules(uint64_t seed, ggml_backend_device * device, ggml_backend * worker) {
    std::mt19937_64 random(mix(seed, device == stock().cpu));
    const auto      below   = [&random](uint64_t n) { return random() % n; };
    const uint64_t  n_rules = 1 + below(4);
    for (uint64_t i = 0; i < n_rules; ++i) {
        auto r               = std::make_unique<rule>();
        r->seed              = random();
        r->name              = std::string("test.random.") + std::to_string(i);
        r->worker            = worker;
        r->eagerness         = 10 + below(90);
        r->wild              = below(3) == 0;
        r->through_workspace = below(2) == 0;
        r->extra_workspace   = below(2) == 0 ? 0 : below(32 * 1024);
        r->n_tasks           = static_cast<int>(below(3));
        r->n_delays          = below(2) == 0 ? 0 : static_cast<int>(below(24));
        const bool single    = below(3) == 0;
        const bool rule_too  = !single || below(2) == 0;
        if (single || below(4) == 0) {
            r->op = overridden[below(std::size(overridden))];
        }

        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = r->name.c_str();
        desc.op          = r->op.empty() ? nullptr : r->op.c_str();
        desc.priority    = static_cast<int32_t>(below(3)) - 1;
        desc.user_data   = r.get();
        if (single) {
            desc.supports  = [](const ggml_ext_node * node, void * user_data) { return wants_node(node, user_data, 1); };
            desc.preferred = below(2) == 0 ? nullptr : +[](const ggml_ext_node * node, void * user_data) { return wants_node(node, user_data, 2); };
        }
        desc.match    = rule_too ? match : nullptr;
        desc.optimize = r->n_delays > 0 ? optimize : nullptr;
        desc.prepare  = prepare;
        if (below(2) == 0) {
            desc.run = run;
        } else {
            desc.execute = execute;
        }
        desc.destroy         = destroy;
        const uint32_t flags = r->through_workspace && below(2) == 0 ? GGML_EXT_KERNEL_OVERLAP_SAFE : 0;
        if (ggml_ext_register_kernel_ex(device, &desc, flags, &r->handle) != GGML_EXT_STATUS_SUCCESS) {
            throw std::runtime_error(ggml_ext_last_error());
        }
        rules_.push_back(std::move(r));
    }
}

random_rules::~random_rules() {
    for (const auto & r : rules_) {
        if (ggml_ext_unregister(r->handle) != GGML_EXT_STATUS_SUCCESS) {
            std::fprintf(stderr, "%s: %s\n", r->name.c_str(), ggml_ext_last_error());
            std::abort(); // the rule's memory cannot go
        }
    }
}

rule_counts random_rules::counts() const {
    rule_counts sum;
    for (const auto & r : rules_) {
        ggml_ext_kernel_stats stats{};
        stats.struct_size = sizeof(stats);
        ggml_ext_get_kernel_stats(r->handle, &stats);
        sum.n_matches += r->counts.n_matches;
        sum.n_refused += stats.n_refused;
        sum.n_failed += stats.n_failed;
        sum.n_delays += r->counts.n_delays;
        sum.n_delays_refused += r->counts.n_delays_refused;
    }
    return sum;
}

std::string describe_plans(ggml_backend * backend) {
    std::string     text;
    ggml_ext_plan * plan = nullptr;
    for (int i = 0; ggml_ext_plan_copy(backend, i, &plan) == GGML_EXT_STATUS_SUCCESS; ++i) {
        ggml_ext_plan_info info{};
        info.struct_size = sizeof(info);
        ggml_ext_plan_get_info(plan, &info);
        text += std::string(info.backend) + " plan " + std::to_string(i) + " of " + std::to_string(info.n_nodes) + " nodes:";
        for (int s = 0; s < info.n_steps; ++s) {
            ggml_ext_plan_step step{};
            step.struct_size = sizeof(step);
            ggml_ext_plan_get_step(plan, s, &step);
            if (step.kernel == nullptr) {
                continue;
            }
            text += std::string(" ") + step.kernel + "[";
            for (int n = step.first; n < step.first + step.n_nodes; ++n) {
                ggml_ext_plan_node node{};
                node.struct_size = sizeof(node);
                ggml_ext_plan_get_node(plan, n, &node);
                text += (n == step.first ? std::to_string(n) + ":" : std::string(",")) + node.op;
            }
            text += "]";
        }
        text += "\n";
        ggml_ext_plan_free(plan);
    }
    return text;
}

} // namespace ggml_ext::test
