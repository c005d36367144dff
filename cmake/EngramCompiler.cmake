# Language level, warnings and floating-point rules for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

set(ENGRAM_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")
option(ENGRAM_WERROR "Treat warnings as errors" ON)

# Everything compiles without contraction: CPU, GPU and a caller that adds the
# contribution itself must round the same products (see compute/gate).
# nvcc has options of its own (EngramCuda.cmake).
function(engram_cxx_options)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${ARGN}>")
endfunction()
engram_cxx_options(-ffp-contract=off -fno-math-errno)
engram_cxx_options(-Wall -Wextra -Wno-missing-field-initializers)
if(ENGRAM_WERROR)
  engram_cxx_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  engram_cxx_options(-Wthread-safety)
endif()

# The presets take clang: such code costs it 55 - 75 % of GCC's time, and it checks
# -Wthread-safety on the way.
if(ENGRAM_SANITIZE)
  add_compile_options(-fsanitize=${ENGRAM_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ENGRAM_SANITIZE})
  if(ENGRAM_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(ENGRAM_CCACHE ccache)
if(ENGRAM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${ENGRAM_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ENGRAM_CCACHE}")
endif()

find_program(ENGRAM_LLD ld.lld)
if(ENGRAM_LLD)
  add_link_options(-fuse-ld=lld)
endif()
