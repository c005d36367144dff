#include "compute/project/cublaslt_api.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace engram {
namespace {

// A library of which the first function that it lacks is remembered.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}

  template <typename Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const handle_;
  std::string missing_;
};

absl::StatusOr<CublasLtApi> FindFunctions(void* handle,
                                          const std::string& name) {
  Library library(handle);
  CublasLtApi api;
  library.Find("cublasLtGetStatusName", api.get_status_name);
  library.Find("cublasLtCreate", api.create);
  library.Find("cublasLtDestroy", api.destroy);
  library.Find("cublasLtMatmul", api.matmul);
  library.Find("cublasLtMatmulAlgoCheck", api.algo_check);
  library.Find("cublasLtMatmulAlgoGetHeuristic", api.algo_get_heuristic);
  library.Find("cublasLtMatmulDescCreate", api.desc_create);
  library.Find("cublasLtMatmulDescDestroy", api.desc_destroy);
  library.Find("cublasLtMatmulDescSetAttribute", api.desc_set_attribute);
  library.Find("cublasLtMatrixLayoutCreate", api.layout_create);
  library.Find("cublasLtMatrixLayoutDestroy", api.layout_destroy);
  library.Find("cublasLtMatmulPreferenceCreate", api.preference_create);
  library.Find("cublasLtMatmulPreferenceDestroy", api.preference_destroy);
  library.Find("cublasLtMatmulPreferenceSetAttribute",
               api.preference_set_attribute);
  if (library.missing().empty()) return api;
  return absl::FailedPreconditionError(
      absl::StrCat("cuBLASLt: ", name, " has no ", library.missing()));
}

}  // namespace

absl::Span<const std::string> CublasLtNames() {
  static const auto* const names =
      new std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so",
                                   "/usr/local/cuda/lib64/libcublasLt.so.13"};
  return *names;
}

absl::StatusOr<CublasLtApi> LoadCublasLt(absl::Span<const std::string> names) {
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    // Not closed: CUDA's libraries do not take that well.
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return FindFunctions(handle, name);
    const char* const reason = dlerror();
    reasons.push_back(reason != nullptr ? reason : name);
  }
  return absl::NotFoundError(absl::StrCat("cuBLASLt cannot be loaded: ",
                                          absl::StrJoin(reasons, "; ")));
}

absl::Status CublasLtStatus(const CublasLtApi& api, cublasStatus_t status,
                            absl::string_view what) {
  const auto message = [&] {
    return absl::StrCat(what, ": ", api.get_status_name(status));
  };
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return absl::OkStatus();
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(message());
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(message());
    default:
      return absl::InternalError(message());
  }
}

}  // namespace engram
