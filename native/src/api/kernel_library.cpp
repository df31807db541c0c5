// C entry: a kernel library's own function, held to what it promises.

#include "exec/runtime.h"
#include "support/status.h"

#include <algorithm>

using namespace ggml_ext;

namespace {

struct hand_over {
    ggml_ext_add_registration            add;
    void *                               context;
    std::vector<ggml_ext_registration *> done;
};

int hand_over_one(ggml_ext_registration * registration, void * context) {
    return guarded([&]() -> int {
        auto & all = *static_cast<hand_over *>(context);
        all.done.reserve(all.done.size() + 1);
        const int status = all.add(registration, all.context);
        if (status == GGML_EXT_STATUS_SUCCESS) {
            all.done.push_back(registration);
        }
        return status;
    });
}

int init_all(ggml_ext_kernel_library_init_t init, ggml_backend_device * device, const registration_log & log, hand_over & all) {
    int status = init(device, hand_over_one, &all);
    for (size_t i = 0; status == GGML_EXT_STATUS_SUCCESS && i < log.registrations().size(); ++i) {
        ggml_ext_registration * registration = log.registrations()[i];
        if (std::find(all.done.begin(), all.done.end(), registration) == all.done.end()) {
            status = hand_over_one(registration, &all);
        }
    }
    return status;
}

} // namespace

int ggml_ext_init_kernel_library(ggml_ext_kernel_library_init_t init, ggml_backend_device * device, ggml_ext_add_registration add,
                                 void * context) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (init == nullptr || device == nullptr || add == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", init == nullptr ? "init" : device == nullptr ? "device"
                                                                                                                     : "add");
        }
        const registration_log log;
        hand_over              all{add, context, {}};
        set_last_error("");
        const int status = guarded([&] { return init_all(init, device, log, all); });
        if (status == GGML_EXT_STATUS_SUCCESS || log.registrations().empty()) {
            return status;
        }
        const std::string                          reason = reason_or_name(status);
        const std::vector<ggml_ext_registration *> rest   = log.registrations(); // withdrawing changes the log
        if (runtime::get().registrations().unregister(rest.data(), rest.size()) != GGML_EXT_STATUS_SUCCESS) {
            return fail(status, "%s; what the library had registered stays: %s", reason.c_str(), std::string(last_error()).c_str());
        }
        return fail(status, "%s", reason.c_str());
    });
}
