#pragma once

// Packed copies of weights (CACHE-1). A copy takes as much memory as the weight, rounded up to whole panels (32 columns at most; K to
// 64 with AMX), and an eighth more where it is INT8 for AVX2, and lives outside ggml's buffers, so ggml's own reports do not count it;
// from 2 MiB on it asks for huge pages. It is found by the weight's address and shared by all plans and backends; copies that no plan
// uses any more are kept, up to MOST_IDLE bytes, and all go when the kernels are withdrawn.
//
// A copy is checked before each use, so that a weight that was set anew, trained or freed is not taken for the old one: a print of
// 64 bytes of each row, at alternating places that reach every column (more of each row where there are few), or of the whole weight
// where that is small. Single elements of a large weight may change unseen: who writes some reports it (ggml_ext_weights_changed; the
// layer itself does for nodes of graphs), or marks the weight as an input (ggml_set_input): inputs are never packed.

#include "node.h"

#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace cpu_ops {

struct weight_shape {
    const void * data;
    int64_t      n, k;
    size_t       stride; // bytes between rows
    int32_t      type;   // F32 or I8

    bool operator==(const weight_shape & o) const {
        return data == o.data && n == o.n && k == o.k && stride == o.stride && type == o.type;
    }
};

class packed_weight {
public:
    // `constant`: only what changed is packed again; else everything is, at each update
    packed_weight(const weight_shape & shape, bool constant);

    const weight_shape & shape() const { return shape_; }
    const void *         data() const { return data_.get(); }
    size_t               size() const { return size_; }

    // Called by each of nth threads; a barrier must follow before the copy is used. Returns a kernel status.
    int update(int ith, int nth);

private:
    struct part {
        int64_t    begin = 0, end = 0; // rows
        std::mutex mutex; // two backends may come to a new weight at the same time
        bool       packed = false;
        uint64_t   print  = 0;
    };
    // What is printed of each row: so many of its lines, from first(row) on, round the row's end. Together they reach each column.
    struct sampling {
        size_t lines, each;

        explicit sampling(const weight_shape & w);
        size_t first(int64_t row) const { return static_cast<size_t>(row) * each % lines; }
    };
    struct free_aligned {
        std::align_val_t alignment;
        void             operator()(void * p) const { ::operator delete(p, alignment); }
    };
    using memory = std::unique_ptr<void, free_aligned>;

    static memory allocate(size_t size);

    void         forget_changed();
    int          pack(int ith, int nth);
    const char * row_of(int64_t i) const;
    void         fetch(int64_t row) const;
    uint64_t     print(const part & p, int64_t fetch_end) const;

    const weight_shape shape_;
    const bool         constant_;
    const size_t       size_;
    const sampling     sampling_;
    const memory       data_;
    std::vector<part>  parts_;
    std::mutex         changes_mutex_;
    uint64_t           version_ = 0; // of the reported changes
};

class weight_cache {
public:
    static constexpr size_t MOST_IDLE = size_t{512} << 20;

    std::shared_ptr<packed_weight> get(const weight_shape & shape);

private:
    void drop_idle();

    std::mutex                                mutex_;
    std::list<std::shared_ptr<packed_weight>> all_; // last used first
};

// The weight of one planned step.
class weight_slot {
public:
    // As packed_weight::update, for the weight that the node has now. Throws std::bad_alloc.
    int update(weight_cache & cache, const ggml_ext_tensor & weight, int ith, int nth);

    const packed_weight & get() const { return *weight_; }

private:
    std::mutex                     mutex_;
    std::shared_ptr<packed_weight> weight_;
};

} // namespace cpu_ops
