# ENGRAM_CUDA: AUTO builds the GPU code when an nvcc of CUDA 13 or later is found,
# ON insists on it, OFF leaves it out. Sets ENGRAM_CUDA_ENABLED.
#
# engram_gpu_library(NAME SRCS a.cc ... CUDA_SRCS b.cu ... DEPS x y)
#   a static library engram_NAME for the GPU; call it only if ENGRAM_CUDA_ENABLED
# engram_cuda_test(NAME ...)
#   engram_test for what needs CUDA's headers, but no GPU; nothing if not ENGRAM_CUDA_ENABLED

set(ENGRAM_CUDA "AUTO" CACHE STRING "Build the GPU code: AUTO, ON or OFF")
set_property(CACHE ENGRAM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ENGRAM_CUDA_ENABLED OFF)

# The sanitizers know nothing of code that nvcc compiles, and its driver's
# mappings collide with theirs.
if(ENGRAM_SANITIZE AND ENGRAM_CUDA STREQUAL "AUTO")
  set(engram_cuda OFF)
else()
  set(engram_cuda "${ENGRAM_CUDA}")
endif()

if(engram_cuda)
  find_program(ENGRAM_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda
               PATH_SUFFIXES bin)
  set(engram_nvcc_version "none")
  if(ENGRAM_NVCC)
    execute_process(COMMAND "${ENGRAM_NVCC}" --version OUTPUT_VARIABLE engram_nvcc_output
                    ERROR_QUIET)
    if(engram_nvcc_output MATCHES "release ([0-9]+\\.[0-9]+)")
      set(engram_nvcc_version "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(engram_nvcc_version VERSION_GREATER_EQUAL 13.0)
    set(ENGRAM_CUDA_ENABLED ON)
    message(STATUS "GPU code: ON, CUDA ${engram_nvcc_version} (${ENGRAM_NVCC})")
  elseif(engram_cuda STREQUAL "AUTO")
    message(STATUS "GPU code: OFF, no nvcc of CUDA 13 or later (found: ${engram_nvcc_version})")
  else()
    message(FATAL_ERROR "ENGRAM_CUDA=${ENGRAM_CUDA} needs nvcc of CUDA 13 or later, "
                        "found: ${engram_nvcc_version}; set CUDA_PATH, or ENGRAM_CUDA=OFF")
  endif()
else()
  message(STATUS "GPU code: OFF")
endif()

if(ENGRAM_CUDA_ENABLED)
  set(CMAKE_CUDA_COMPILER "${ENGRAM_NVCC}")
  # Machine code for Hopper, and PTX that a driver compiles for what comes later.
  set(CMAKE_CUDA_ARCHITECTURES 90)
  # Linked into the binary: a machine without CUDA must be able to start it.
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2 -DNDEBUG -lineinfo")
  if(ENGRAM_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${ENGRAM_CCACHE}")
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit 13.0 REQUIRED)
  # No contraction, as for the CPU (EngramCompiler.cmake).
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>)
  if(ENGRAM_WERROR)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
  endif()
endif()

function(engram_gpu_library name)
  cmake_parse_arguments(arg "" "" "SRCS;CUDA_SRCS;DEPS" ${ARGN})
  add_library(engram_${name} STATIC ${arg_SRCS} ${arg_CUDA_SRCS})
  target_include_directories(engram_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(engram_${name} PUBLIC ${arg_DEPS} CUDA::cudart_static)
endfunction()

function(engram_cuda_test name)
  if(ENGRAM_CUDA_ENABLED)
    engram_test(${name} ${ARGN})
    return()
  endif()
  cmake_parse_arguments(arg "CONCURRENT" "LABEL;TIMEOUT" "SRCS;DEPS" ${ARGN})
  list(TRANSFORM arg_SRCS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL APPEND PROPERTY ENGRAM_LISTED_TESTS ${arg_SRCS})
endfunction()
