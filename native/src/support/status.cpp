#include "support/status.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#if defined(__MINGW32__)
#    include <pthread.h>
#endif

namespace ggml_ext {

namespace {

#if defined(__MINGW32__)
// Not thread_local: at a thread's end MinGW's runtime frees the memory of such objects before it calls their destructors.
std::string & error_message() {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        pthread_key_create(&made, [](void * message) { delete static_cast<std::string *>(message); });
        return made;
    }();
    auto * message = static_cast<std::string *>(pthread_getspecific(key));
    if (message == nullptr) {
        message = new std::string();
        pthread_setspecific(key, message);
    }
    return *message;
}
#else
std::string & error_message() {
    thread_local std::string message;
    return message;
}
#endif

struct log_target {
    std::recursive_mutex  mutex; // the callback may call us
    ggml_ext_log_callback callback  = nullptr;
    void *                user_data = nullptr;
};

log_target & target() {
    static auto * instance = new log_target; // threads of ggml may outlive static destruction
    return *instance;
}

std::string vformat(const char * format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int   length = std::vsnprintf(nullptr, 0, format, arguments);
    std::string text(length < 0 ? 0 : static_cast<size_t>(length), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    va_end(again);
    return text;
}

} // namespace

int fail(int status, const char * format, ...) {
    va_list arguments;
    va_start(arguments, format);
    error_message() = vformat(format, arguments);
    va_end(arguments);
    return status;
}

void set_last_error(const char * message) {
    if (message == nullptr || *message == '\0') {
        error_message().clear();
    } else {
        error_message() = message;
    }
}

const char * reason_or_name(int status) {
    const char * reason = last_error();
    return *reason != '\0' ? reason : ggml_ext_status_name(status);
}

const char * last_error() {
    return error_message().c_str();
}

std::string format(const char * format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::string text = vformat(format, arguments);
    va_end(arguments);
    return text;
}

void log(ggml_ext_log_level level, const char * format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const std::string text = vformat(format, arguments);
    va_end(arguments);

    // held while the callback runs: once log_set has returned, the old callback is not running and is not called again
    std::lock_guard<std::recursive_mutex> lock(target().mutex);
    if (target().callback != nullptr) {
        target().callback(level, text.c_str(), target().user_data);
    } else if (level >= GGML_EXT_LOG_LEVEL_WARN) {
        std::fprintf(stderr, "ggml-ext: %s\n", text.c_str());
    }
}

void log_set(ggml_ext_log_callback callback, void * user_data) {
    std::lock_guard<std::recursive_mutex> lock(target().mutex);
    target().callback  = callback;
    target().user_data = user_data;
}

} // namespace ggml_ext
