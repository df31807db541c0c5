# What every target for Windows has in common; the compiler is MinGW-w64's GCC.

# Named as ggml's own libraries there, and libraries and programs in one folder: that is where the loader looks.
set(CMAKE_SHARED_LIBRARY_PREFIX "")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Nothing but Windows's own libraries is needed at run time, and the same build gives the same bytes.
add_link_options(-static -Wl,--no-insert-timestamp)

# GCC keeps the stack aligned to 16 bytes there, and moves vectors of 32 and 64 bytes as if they lay aligned on it (its bug 54412).
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wa,-muse-unaligned-vector-move>)
