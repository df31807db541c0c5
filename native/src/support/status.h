#pragma once
// Status, the message of the last failure on a thread, and log lines.

#include "ggml-ext.h"

#include <string>

// Formats are those of C99, not those of Windows's old C library.
#if defined(__MINGW32__)
#    define GGML_EXT_PRINTF gnu_printf
#else
#    define GGML_EXT_PRINTF printf
#endif

namespace ggml_ext {

// records a formatted message for this thread and returns `status`
__attribute__((format(GGML_EXT_PRINTF, 2, 3))) int fail(int status, const char * format, ...);

void         set_last_error(const char * message);
const char * last_error();
// the last error, or the status' name where a callback left no message
const char * reason_or_name(int status);

__attribute__((format(GGML_EXT_PRINTF, 2, 3))) void log(ggml_ext_log_level level, const char * format, ...);
void                                                log_set(ggml_ext_log_callback callback, void * user_data);

std::string format(const char * format, ...) __attribute__((format(GGML_EXT_PRINTF, 1, 2)));

// Runs a C entry's body: no C++ exception leaves it.
template <typename Body> int guarded(Body && body) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fail(GGML_EXT_STATUS_NO_MEMORY, "out of memory");
    } catch (const std::exception & e) {
        return fail(GGML_EXT_STATUS_FAILED, "%s", e.what());
    }
}

// Of any version of any struct: one that is cut within a pointer would be read as another pointer.
constexpr bool is_struct_size(size_t size) {
    return size >= sizeof(size_t) && size % alignof(size_t) == 0;
}

// Copies min(from.struct_size, to->struct_size) bytes, and keeps to->struct_size: a caller compiled with an older or
// newer header gets the fields that it knows.
template <typename T> int fill_struct(T * to, T from, const char * what);

// The way in: fields that the caller's header had not are zero.
template <typename T> int read_struct(const T * from, T & to, const char * what);

} // namespace ggml_ext

#include <cstring>

template <typename T> int ggml_ext::fill_struct(T * to, T from, const char * what) {
    if (to == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", what);
    }
    if (!is_struct_size(to->struct_size)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s->struct_size is %zu, expected sizeof(the struct)", what,
                    to->struct_size);
    }
    const size_t size = to->struct_size < sizeof(T) ? to->struct_size : sizeof(T);
    from.struct_size  = to->struct_size;
    std::memcpy(static_cast<void *>(to), &from, size);
    return GGML_EXT_STATUS_SUCCESS;
}

template <typename T> int ggml_ext::read_struct(const T * from, T & to, const char * what) {
    if (from == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", what);
    }
    if (!is_struct_size(from->struct_size)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s->struct_size is %zu, expected sizeof(the struct)", what, from->struct_size);
    }
    to = T{};
    std::memcpy(static_cast<void *>(&to), from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
    to.struct_size = sizeof(T);
    return GGML_EXT_STATUS_SUCCESS;
}
