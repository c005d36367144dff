# engram_library(NAME SRCS a.cc ... DEPS x y)      static library engram_NAME
# engram_binary(NAME SRCS main.cc DEPS x y)        executable bin/NAME
# engram_test(NAME LABEL unit SRCS a_test.cc ... DEPS x y [TIMEOUT 120] [CONCURRENT])
#   a GoogleTest binary; one ctest entry. CONCURRENT: is also run under tsan.
# engram_kernel_test(...)                          engram_test for *_kernel.cuh, which run
#   on the CPU (tests/gpu/emulator); not under tsan
# engram_python_test(NAME LABEL integration [TIMEOUT 300] [LOCK resource] [SCRIPT b_test.py ARGS x y])
#   NAME.py of this folder, or another program with arguments, that starts the release
#   binaries; those that share a LOCK run one after another; exit code 77: skipped
# engram_check_all_tests_listed()                  a *_test.cc or *_test.py that no rule
#   lists is an error

function(engram_library name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  if(arg_SRCS)
    add_library(engram_${name} STATIC ${arg_SRCS})
    target_include_directories(engram_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
    target_link_libraries(engram_${name} PUBLIC ${arg_DEPS})
  else()
    add_library(engram_${name} INTERFACE)
    target_include_directories(engram_${name} INTERFACE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(engram_${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

function(engram_binary name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
endfunction()

function(engram_test name)
  cmake_parse_arguments(arg "CONCURRENT" "LABEL;TIMEOUT" "SRCS;DEPS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  foreach(src IN LISTS arg_SRCS)
    get_filename_component(path "${src}" ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY ENGRAM_LISTED_TESTS "${path}")
  endforeach()
  # tsan sees only code that it compiled: gRPC and Abseil from Debian are not
  # built for it, so only the tests that name themselves CONCURRENT run there.
  if(ENGRAM_SANITIZE MATCHES "thread" AND NOT arg_CONCURRENT)
    return()
  endif()
  add_executable(${name} ${arg_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE ENGRAM_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                             ENGRAM_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  set(test "${ENGRAM_TEST_PREFIX}${arg_LABEL}.${name}")
  add_test(NAME ${test} COMMAND ${name})
  set_tests_properties(${test} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT})
  set_property(GLOBAL APPEND PROPERTY ENGRAM_TEST_TARGETS ${name})
endfunction()

function(engram_kernel_test name)
  engram_test(${name} ${ARGN})
  if(TARGET ${name})
    # Its <cuda_runtime.h> and core/gpu/ptx.cuh stand in for the real ones.
    target_include_directories(${name} BEFORE PRIVATE "${CMAKE_SOURCE_DIR}/tests/gpu/emulator")
    target_link_libraries(${name} PRIVATE engram_emulator)
  endif()
endfunction()

function(engram_python_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT;LOCK;SCRIPT" "ARGS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_SCRIPT)
    set(arg_SCRIPT ${name}.py)
  endif()
  set(path "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT}")
  set_property(GLOBAL APPEND PROPERTY ENGRAM_LISTED_TESTS "${path}")
  if(ENGRAM_SANITIZE)
    return()  # they start the binaries of the release build
  endif()
  set(test ${arg_LABEL}.${name})
  add_test(NAME ${test} COMMAND /usr/bin/python3 "${path}" ${arg_ARGS})
  set(python_path "${CMAKE_BINARY_DIR}/python:${CMAKE_SOURCE_DIR}/tests/golden:${CMAKE_SOURCE_DIR}/tests/testing")
  set_tests_properties(${test} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "ENGRAM_BIN_DIR=${CMAKE_BINARY_DIR}/bin;PYTHONPATH=${python_path};PYTHONDONTWRITEBYTECODE=1")
  if(arg_LOCK)
    set_tests_properties(${test} PROPERTIES RESOURCE_LOCK ${arg_LOCK})
  endif()
endfunction()

function(engram_check_all_tests_listed)
  get_property(listed GLOBAL PROPERTY ENGRAM_LISTED_TESTS)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS
    "${CMAKE_SOURCE_DIR}/tests/*_test.cc" "${CMAKE_SOURCE_DIR}/tests/*_test.py")
  foreach(path IN LISTS found)
    if(NOT path IN_LIST listed)
      message(FATAL_ERROR "${path} is listed by no engram_test() or engram_python_test() rule, so it would never run")
    endif()
  endforeach()
  get_property(targets GLOBAL PROPERTY ENGRAM_TEST_TARGETS)
  add_custom_target(engram_tests DEPENDS ${targets})
endfunction()
