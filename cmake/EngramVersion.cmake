# Writes build_info.h: version and commit, for --version and engram_build_info.

execute_process(COMMAND git -C "${CMAKE_SOURCE_DIR}" rev-parse --short=12 HEAD
                OUTPUT_VARIABLE ENGRAM_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE engram_git_result)
if(NOT engram_git_result EQUAL 0)
  set(ENGRAM_COMMIT "unknown")
endif()
configure_file("${CMAKE_SOURCE_DIR}/core/base/build_info.cc.in"
               "${CMAKE_BINARY_DIR}/generated/build_info.cc" @ONLY)
