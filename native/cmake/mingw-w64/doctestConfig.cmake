# The host's doctest: headers alone, but in a folder with the host's C library, which this compiler must not see.
find_path(GGML_EXT_HOST_DOCTEST doctest/doctest.h PATHS /usr/include /usr/local/include REQUIRED NO_CMAKE_FIND_ROOT_PATH)
file(COPY ${GGML_EXT_HOST_DOCTEST}/doctest DESTINATION ${CMAKE_BINARY_DIR}/doctest)
if(NOT TARGET doctest::doctest)
    add_library(doctest::doctest INTERFACE IMPORTED)
    set_target_properties(doctest::doctest PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/doctest)
endif()
