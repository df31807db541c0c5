#include "device.h"

#include <string>

TEST_CASE("BOUND-1: a failure is a status with a message of what was given and what was expected") {
    CHECK(ggml_ext_cuda_rope(nullptr, nullptr) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(std::string(ggml_ext_cuda_last_error()) == "rope: args is null");
    ggml_ext_cuda_quantize_i8_args args = {};
    args.M = args.K = args.padded_rows = 1;
    args.group                         = 8;
    CHECK(ggml_ext_cuda_quantize_i8(&args, nullptr, 0, nullptr) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(std::string(ggml_ext_cuda_last_error()) == "quantize_i8: group is 8, expected 1, 4, 16, 64 or 256");
    args.group = 64;
    args.K     = 64;
    CHECK(ggml_ext_cuda_quantize_i8(&args, nullptr, 0, nullptr) == GGML_EXT_CUDA_UNSUPPORTED);
}

TEST_CASE("CAP-1: all kernels record into a strictly captured graph, and a replay sees changed contents") {
    const int64_t           M = 5, K = 40960; // long enough for the kernels of parts
    test::device<float>     x(test::uniform(M * K, 1)), scale(M), y(M * K);
    test::device<int8_t>    q(8 * K), workspace(static_cast<int64_t>(ggml_ext_cuda_quantize_i8_workspace_size(M, K)));
    test::device<float>     pe(std::vector<float>(static_cast<std::size_t>(M * 64 * 4), 0.5f));
    const std::size_t       row  = static_cast<std::size_t>(K) * 4;
    ggml_ext_cuda_rope_args rope = {};
    rope.d_head = rope.d_rot = 128;
    rope.n_head              = K / 128;
    rope.L                   = M;
    rope.N                   = 1;
    rope.x                   = x.data();
    rope.dst                 = y.data();
    rope.x_nb1 = rope.dst_nb1 = 512;
    rope.x_nb2 = rope.dst_nb2                     = row;
    rope.pe                                       = pe.data();
    rope.pe_pair                                  = 16;
    rope.pe_position                              = 1024;
    rope.scale                                    = 1;
    const ggml_ext_cuda_quantize_i8_args quantize = {
        M, K, 256, 8, y.data(), row, q.data(), static_cast<std::size_t>(K), scale.data()};

    const auto once = [&](cudaStream_t stream) {
        CHECK(ggml_ext_cuda_rope(&rope, stream) == GGML_EXT_CUDA_OK);
        CHECK(ggml_ext_cuda_quantize_i8(&quantize, workspace.data(), workspace.bytes(), stream) == GGML_EXT_CUDA_OK);
    };
    cudaStream_t    stream;
    cudaGraph_t     graph;
    cudaGraphExec_t executable;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    once(stream);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);

    for (unsigned seed : {2u, 3u}) {
        const std::vector<float> fresh = test::uniform(M * K, seed);
        REQUIRE(cudaMemcpy(x.data(), fresh.data(), x.bytes(), cudaMemcpyHostToDevice) == cudaSuccess);
        q.poison();
        scale.poison(); // and waits for the copy, too
        REQUIRE(cudaGraphLaunch(executable, stream) == cudaSuccess);
        const auto replayed_q     = q.get();
        const auto replayed_scale = scale.get();
        q.poison();
        scale.poison();
        y.poison();
        once(stream);
        CHECK(replayed_q == q.get());
        CHECK(replayed_scale == scale.get());
    }
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}
