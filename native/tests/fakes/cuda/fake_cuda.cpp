#include "fake_cuda_state.h"

#include <cstdlib>
#include <cstring>

namespace fake {

state & the() {
    static state * instance = new state();
    return *instance;
}

CUcontext & current_context() {
    thread_local CUcontext current = nullptr;
    return current;
}

} // namespace fake

using namespace fake;

namespace {

constexpr CUresult INVALID_DEVICE = 101;

thread_local std::vector<CUcontext> pushed;

} // namespace

FAKE int fake_cuda_calls(const char * function) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().calls[function];
}

FAKE int fake_cuda_live() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().live;
}

FAKE void fake_cuda_fail_next(const char * function, CUresult error) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().failures[function] = error;
}

FAKE int fake_cuda_current_device() {
    return current_context() == nullptr ? -1 : static_cast<int>(current_context() - the().contexts);
}

FAKE void fake_cuda_set_device(int major, int minor, bool has_vmm, int driver_version) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().major   = major;
    the().minor   = minor;
    the().has_vmm = has_vmm ? 1 : 0;
    the().version = driver_version;
}

FAKE const char * fake_cuda_violations() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().violations.c_str();
}

FAKE void fake_cuda_note_violation(const char * text) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().violations += std::string(text) + "\n";
}

FAKE void fake_cuda_forget_violations() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().violations.clear();
}

FAKE CUresult cuInit(unsigned) {
    return entry("cuInit", false).result;
}

FAKE CUresult cuDriverGetVersion(int * version) {
    const entry e("cuDriverGetVersion", false);
    *version = the().version;
    return e.result;
}

FAKE CUresult cuGetErrorName(CUresult, const char ** name) {
    *name = "CUDA_ERROR_OF_THE_FAKE";
    return 0;
}

FAKE CUresult cuGetErrorString(CUresult, const char ** text) {
    *text = "as the fake driver was told, or found";
    return 0;
}

FAKE CUresult cuDeviceGetCount(int * count) {
    *count = 8;
    return entry("cuDeviceGetCount", false).result;
}

FAKE CUresult cuDeviceGetByPCIBusId(CUdevice * device, const char * id) { // "0000:03:00.0" is device 3
    const entry e("cuDeviceGetByPCIBusId", false);
    const int   bus = std::strlen(id) == 12 ? std::atoi(id + 5) : -1;
    *device         = bus;
    return bus < 0 || bus > 7 ? INVALID_DEVICE : e.result;
}

FAKE CUresult cuDeviceGetAttribute(int * value, int attribute, CUdevice) {
    const entry e("cuDeviceGetAttribute", false);
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:            *value = the().major; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:            *value = the().minor; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:   *value = 232448; break;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: *value = the().has_vmm; break;
        default:                                                      return INVALID_VALUE;
    }
    return e.result;
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext * context, CUdevice device) {
    const entry e("cuDevicePrimaryCtxRetain", false);
    *context = &the().contexts[device];
    return e.result;
}

FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    return entry("cuDevicePrimaryCtxRelease", false).result;
}

FAKE CUresult cuCtxSetCurrent(CUcontext context) {
    const entry e("cuCtxSetCurrent", false);
    current_context() = context;
    return e.result;
}

FAKE CUresult cuCtxPushCurrent_v2(CUcontext context) {
    const entry e("cuCtxPushCurrent", false);
    if (e.result == 0) {
        pushed.push_back(current_context());
        current_context() = context;
    }
    return e.result;
}

FAKE CUresult cuCtxPopCurrent_v2(CUcontext * context) {
    const entry e("cuCtxPopCurrent");
    *context = current_context();
    if (pushed.empty()) {
        fake_cuda_note_violation("a context is popped that was not pushed");
        return INVALID_CONTEXT;
    }
    current_context() = pushed.back();
    pushed.pop_back();
    return e.result;
}
