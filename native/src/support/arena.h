#pragma once
// Memory for many small things that go together.

#include <cstddef>
#include <memory>
#include <vector>

namespace ggml_ext {

class arena {
public:
    // aligned for every type, and there until the arena goes
    void * allocate(size_t size) {
        size = (size + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
        if (size > left_) {
            left_ = size > CHUNK ? size : CHUNK;
            chunks_.emplace_back(new char[left_]);
            next_ = chunks_.back().get();
        }
        void * memory = next_;
        next_ += size;
        left_ -= size;
        return memory;
    }

private:
    static constexpr size_t CHUNK = 16384;

    std::vector<std::unique_ptr<char[]>> chunks_;
    char *                               next_ = nullptr;
    size_t                               left_ = 0;
};

} // namespace ggml_ext
