#pragma once
// Our stream beside a CUDA backend's own, which is private to ggml. The two are ordered by events alone, through the backend's
// interface; captures of one become captures of the other the same way.

#include "cuda/device.h"

namespace ggml_ext::exec {

class side_stream {
public:
    side_stream(const abi::ggml & g, std::shared_ptr<const cuda::device> device, ggml_backend * backend);
    ~side_stream();
    side_stream(const side_stream &)             = delete;
    side_stream & operator=(const side_stream &) = delete;

    int open(); // once; a status

    cuda::CUstream get() const { return stream_; }

    // what we enqueue from now on runs after what the backend was given so far; a status
    int after_native();
    // what the backend is given from now on runs after what we have enqueued so far; a status
    int before_native();

    int capture_status(cuda::CUstreamCaptureStatus & out) const;
    int synchronize() const;

private:
    const abi::ggml &                   g_;
    std::shared_ptr<const cuda::device> device_;
    ggml_backend *                      backend_;
    cuda::CUstream                      stream_ = nullptr;
    ggml_backend_event                  native_done_{};
    ggml_backend_event                  ours_done_{};
};

} // namespace ggml_ext::exec
