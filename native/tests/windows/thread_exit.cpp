// doctest and the fakes have thread_local objects. At a thread's end MinGW's runtime frees their memory and calls their destructors
// in the order in which the first such memory and the first such destructor were asked for; this asks for a destructor at the start.

#include <cxxabi.h>

namespace {

[[maybe_unused]] const int asked = __cxxabiv1::__cxa_thread_atexit([](void *) {}, nullptr, nullptr);

} // namespace
