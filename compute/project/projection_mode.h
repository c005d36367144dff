#ifndef ENGRAM_COMPUTE_PROJECT_PROJECTION_MODE_H_
#define ENGRAM_COMPUTE_PROJECT_PROJECTION_MODE_H_

namespace engram {

// How a GPU projects. The CPU knows kInvariant only.
enum class ProjectionMode {
  // One order of K for every number of tokens: a token's bits depend on
  // nothing but its own rows.
  kInvariant,
  // cuBLASLt's choice, which may change with the number of tokens.
  kFast,
};

constexpr const char* ToString(ProjectionMode mode) {
  return mode == ProjectionMode::kFast ? "fast" : "invariant";
}

}  // namespace engram

#endif  // ENGRAM_COMPUTE_PROJECT_PROJECTION_MODE_H_
