#include "cuda/device.h"

#include "cuda/fat_binary.h"
#include "support/status.h"

#include <cstdlib>
#include <cstring>

namespace ggml_ext::cuda {

namespace {

// ggml_backend_dev_props, with room for fields that newer versions add
struct device_props {
    const char * name;
    const char * description;
    size_t       memory_free, memory_total;
    int32_t      type;
    const char * device_id; // "0000:c1:00.0", and "-v1" behind it for a second ggml device on the same GPU
    char         more[256];
};

bool is_set(const char * variable) {
    return std::getenv(variable) != nullptr;
}

bool is_on(const char * variable) { // as ggml reads GGML_CUDA_DISABLE_FUSION
    return is_set(variable) && std::atoi(std::getenv(variable)) != 0;
}

int find_ordinal(const abi::ggml & g, ggml_backend_device * ggml_device, const driver & cu, CUdevice & ordinal) {
    device_props props{};
    g.fn.ggml_backend_dev_get_props(ggml_device, &props);
    if (props.device_id != nullptr) {
        std::string id = props.device_id;
        id             = id.substr(0, id.find('-'));
        return check(cu, cu.cuDeviceGetByPCIBusId(&ordinal, id.c_str()), ("cuDeviceGetByPCIBusId(" + id + ")").c_str());
    }
    // a ggml that does not know the bus: its names count the devices
    const char * name  = g.fn.ggml_backend_dev_name(ggml_device);
    int          count = 0;
    if (const int status = check(cu, cu.cuDeviceGetCount(&count), "cuDeviceGetCount"); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (std::strncmp(name, "CUDA", 4) != 0 || std::atoi(name + 4) >= count) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "ggml does not say which of the %d GPUs it is", count);
    }
    ordinal = std::atoi(name + 4);
    return GGML_EXT_STATUS_SUCCESS;
}

int attribute(const device & d, CUdevice_attribute which, int & out) {
    return check(*d.cu, d.cu->cuDeviceGetAttribute(&out, which, d.ordinal), "cuDeviceGetAttribute");
}

int check_code(const device & d, const void * code) {
    const std::string file = image_of(code).file;
    if (file.empty()) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "COMPAT-3: the file of ggml's CUDA library is not known");
    }
    std::vector<device_code> codes;
    if (const int status = read_device_code(file, codes); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    for (const device_code & c : codes) {
        if (runs_on(c, d.major, d.minor, d.cu->version)) {
            return GGML_EXT_STATUS_SUCCESS;
        }
    }
    return fail(GGML_EXT_STATUS_UNSUPPORTED,
                "COMPAT-3: %s has no code that this GPU can run: it needs sm_%d%d, or PTX that the driver (CUDA %d.%d) compiles, and there "
                "is: %s; ggml would end the process at its first kernel, so use the CPU or a ggml built for this GPU",
                file.c_str(), d.major, d.minor, d.cu->version / 1000, d.cu->version % 1000 / 10, to_text(codes).c_str());
}

// Where native scratch memory could move, recorded addresses would be wrong: that needs virtual memory management in the device
// and in ggml's build.
int find_whole_plans(const abi::ggml & g, ggml_backend_device * ggml_device, device & d) {
    int has_vmm = 0;
    if (const int status = attribute(d, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, has_vmm); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    struct feature {
        const char * name;
        const char * value;
    };
    auto * reg      = g.fn.ggml_backend_dev_backend_reg(ggml_device);
    auto * features = reinterpret_cast<feature * (*) (struct ggml_backend_reg *)>(
        g.fn.ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features"));
    for (const feature * f = features != nullptr ? features(reg) : nullptr; f != nullptr && f->name != nullptr; ++f) {
        if (std::strcmp(f->name, "NO_VMM") == 0) {
            has_vmm = 0;
        }
    }
    d.whole_plans = has_vmm != 0 && !is_set("GGML_CUDA_DISABLE_GRAPHS");
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

device::~device() {
    if (context != nullptr) {
        cu->cuDevicePrimaryCtxRelease(ordinal);
    }
}

int device::make_current() const {
    return check(*cu, cu->cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

device_scope::device_scope(const device & d) : cu_(*d.cu), status_(check(cu_, cu_.cuCtxPushCurrent(d.context), "cuCtxPushCurrent")) {}

device_scope::~device_scope() {
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        CUcontext popped = nullptr;
        cu_.cuCtxPopCurrent(&popped);
    }
}

bool is_cuda(const abi::ggml & g, struct ggml_backend_reg * reg) {
    return std::strcmp(g.fn.ggml_backend_reg_name(reg), "CUDA") == 0;
}

std::shared_ptr<const device> open_device(const abi::ggml & g, ggml_backend_device * ggml_device, const void * code) {
    auto d = std::make_shared<device>();
    d->cu  = load_driver();
    if (d->cu == nullptr) {
        return nullptr;
    }
    if (find_ordinal(g, ggml_device, *d->cu, d->ordinal) != GGML_EXT_STATUS_SUCCESS ||
        attribute(*d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->major) != GGML_EXT_STATUS_SUCCESS ||
        attribute(*d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->minor) != GGML_EXT_STATUS_SUCCESS ||
        check_code(*d, code) != GGML_EXT_STATUS_SUCCESS || find_whole_plans(g, ggml_device, *d) != GGML_EXT_STATUS_SUCCESS ||
        check(*d->cu, d->cu->cuDevicePrimaryCtxRetain(&d->context, d->ordinal), "cuDevicePrimaryCtxRetain") != GGML_EXT_STATUS_SUCCESS) {
        return nullptr;
    }
    d->fusion       = !is_on("GGML_CUDA_DISABLE_FUSION");
    d->force_cublas = is_set("GGML_CUDA_FORCE_CUBLAS");
    return d;
}

} // namespace ggml_ext::cuda
