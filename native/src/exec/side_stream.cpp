#include "exec/side_stream.h"

#include "support/status.h"

namespace ggml_ext::exec {

using cuda::check;

side_stream::side_stream(const abi::ggml & g, std::shared_ptr<const cuda::device> device, ggml_backend * backend)
    : g_(g), device_(std::move(device)), backend_(backend) {}

int side_stream::open() {
    const cuda::driver & cu = *device_->cu;
    if (const int status = check(cu, cu.cuStreamCreate(&stream_, cuda::CU_STREAM_NON_BLOCKING), "cuStreamCreate"); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    for (ggml_backend_event * e : {&native_done_, &ours_done_}) {
        cuda::CUevent event = nullptr;
        if (const int status = check(cu, cu.cuEventCreate(&event, cuda::CU_EVENT_DISABLE_TIMING), "cuEventCreate"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        *e = {g_.fn.ggml_backend_get_device(backend_), event};
    }
    return GGML_EXT_STATUS_SUCCESS;
}

side_stream::~side_stream() {
    const cuda::driver & cu = *device_->cu;
    for (const ggml_backend_event & e : {native_done_, ours_done_}) {
        if (e.context != nullptr) {
            cu.cuEventDestroy(static_cast<cuda::CUevent>(e.context));
        }
    }
    if (stream_ != nullptr) {
        cu.cuStreamDestroy(stream_);
    }
}

int side_stream::after_native() {
    const cuda::driver & cu = *device_->cu;
    g_.fn.ggml_backend_event_record(&native_done_, backend_);
    return check(cu, cu.cuStreamWaitEvent(stream_, static_cast<cuda::CUevent>(native_done_.context), 0), "cuStreamWaitEvent");
}

int side_stream::before_native() {
    const cuda::driver & cu = *device_->cu;
    if (const int status = check(cu, cu.cuEventRecord(static_cast<cuda::CUevent>(ours_done_.context), stream_), "cuEventRecord");
        status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    g_.fn.ggml_backend_event_wait(backend_, &ours_done_);
    return GGML_EXT_STATUS_SUCCESS;
}

int side_stream::capture_status(cuda::CUstreamCaptureStatus & out) const {
    return check(*device_->cu, device_->cu->cuStreamIsCapturing(stream_, &out), "cuStreamIsCapturing");
}

int side_stream::synchronize() const {
    return check(*device_->cu, device_->cu->cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

} // namespace ggml_ext::exec
