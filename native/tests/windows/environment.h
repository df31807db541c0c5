#pragma once
// What the tests use of POSIX's environment, on Windows; included in front of every C++ source there.

#include <stdlib.h>

inline int setenv(const char * name, const char * value, int) {
    return _putenv_s(name, value);
}

inline int unsetenv(const char * name) {
    return _putenv_s(name, "");
}
