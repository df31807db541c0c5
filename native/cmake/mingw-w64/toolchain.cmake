# Windows x86-64 from Linux, with MinGW-w64, its POSIX threads, and wine for the tests (Debian: g++-mingw-w64-x86-64-posix, wine64).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)

set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(doctest_DIR ${CMAKE_CURRENT_LIST_DIR})

find_program(GGML_EXT_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(GGML_EXT_WINE)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${GGML_EXT_WINE})
endif()
