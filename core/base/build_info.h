#ifndef ENGRAM_CORE_BASE_BUILD_INFO_H_
#define ENGRAM_CORE_BASE_BUILD_INFO_H_

namespace engram {

// Release and commit this binary was configured from, for --version and the
// engram_build_info metric.
extern const char kBuildVersion[];
extern const char kBuildCommit[];

}  // namespace engram

#endif  // ENGRAM_CORE_BASE_BUILD_INFO_H_
