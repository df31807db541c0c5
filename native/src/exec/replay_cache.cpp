#include "exec/replay_cache.h"

#include <algorithm>

namespace ggml_ext::exec {

graph_exec::~graph_exec() {
    if (exec_ != nullptr) {
        device_->make_current();
        device_->cu->cuGraphExecDestroy(exec_);
    }
}

void replay_cache::add(const recording_ptr & r) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_front(r);
}

void replay_cache::retire(recording_ptr r) {
    std::list<recording_ptr>          dropped; // destroyed outside the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    if (r.use_count() > 1 || r->workspace_size > MAX_WORKSPACE_BYTES) {
        return; // another plan has it too, or it stays with its plan
    }
    workspace_size_ += r->workspace_size;
    retired_.push_back(std::move(r));
    while (retired_.size() > MAX_RETIRED || workspace_size_ > MAX_WORKSPACE_BYTES) {
        workspace_size_ -= retired_.front()->workspace_size;
        dropped.splice(dropped.end(), retired_, retired_.begin());
    }
}

recording_ptr replay_cache::find(const plan_key & key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    recording_ptr                     found;
    all_.remove_if([&](const std::weak_ptr<recording> & known) {
        const recording_ptr r = known.lock();
        if (r != nullptr && found == nullptr && r->key == key) {
            found = r;
        }
        return r == nullptr;
    });
    const auto again = std::find(retired_.begin(), retired_.end(), found);
    if (found != nullptr && again != retired_.end()) {
        workspace_size_ -= found->workspace_size;
        retired_.erase(again);
    }
    return found;
}

} // namespace ggml_ext::exec
