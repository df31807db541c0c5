#pragma once
// The one place that decides which kernel serves a node (KERNEL-1, KERNEL-2).

#include "interpose/device.h"
#include "plan/plan.h"

#include <functional>
#include <unordered_map>

namespace ggml_ext::plan {

struct selection {
    kernel_ptr k;      // NULL: the device's own kernel, or none at all
    bool       native; // where k is NULL: the device's own kernel supports the node
    bool       switched_off = false; // where k is NULL: a kernel that may have served the node is
};

// `why_not` may be NULL; `node_index` is written into it.
selection select_kernel(const attached_device & device, const snapshot & kernels, const ggml_tensor * node, int node_index,
                        refusal_list * why_not);

// KERNEL-2: whether a kernel for that node is being chosen on this thread. The same question asked by its callbacks gets the native answer.
bool being_selected(const attached_device & device, const ggml_tensor * node);

// What devices answered on this thread to queries of nodes, while answers are held (ggml_ext_hold_answers).
class held_answers {
public:
    static void hold(bool more); // nests
    // the first answer, NULL before there is one, and where none is held
    static const bool * find(const attached_device & device, const ggml_tensor * node);
    static void         keep(const attached_device & device, const ggml_tensor * node, bool answer);

private:
    struct key {
        const attached_device * device;
        const ggml_tensor *     node;
        bool                    operator==(const key & o) const { return device == o.device && node == o.node; }
    };
    struct hash {
        size_t operator()(const key & k) const {
            return std::hash<const void *>()(k.device) * 31 + std::hash<const void *>()(k.node);
        }
    };
    static inline thread_local int                                 depth = 0;
    static inline thread_local std::unordered_map<key, bool, hash> answers;
};

// May extensions serve this node at all? Views and explicit in-place nodes are not intercepted (KERNEL-5).
bool interceptable(const abi::ggml & g, const ggml_tensor * node);

// Whether a source lies in memory of the device whose layout only the device knows: weights that the CPU repacks, for one.
bool has_opaque_source(const attached_device & device, const ggml_tensor * node);

constexpr const char * OPAQUE_SOURCE = "a source lies in a buffer in which the device keeps its own layout";

// The status of a callback's negative answer.
int status_of_answer(int32_t negative);

} // namespace ggml_ext::plan
