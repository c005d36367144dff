#include "compute/project/cublaslt_api.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CublasLtApiTest, SaysWhatIsNotThere) {
  const std::vector<std::string> names = {"/nonexistent/libcublasLt.so.13",
                                          "libcublasLt-no-such.so"};
  EXPECT_THAT(LoadCublasLt(names),
              IsError(absl::StatusCode::kNotFound,
                      AllOf(HasSubstr("cuBLASLt cannot be loaded"),
                            HasSubstr("/nonexistent/libcublasLt.so.13"),
                            HasSubstr("libcublasLt-no-such.so"))));
}

TEST(CublasLtApiTest, SaysWhichFunctionALibraryLacks) {
  const std::vector<std::string> names = {"/nonexistent/libcublasLt.so.13",
                                          "libm.so.6"};
  EXPECT_THAT(LoadCublasLt(names),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("libm.so.6 has no cublasLtGetStatusName")));
}

TEST(CublasLtApiTest, TheRealOneHasWhatIsUsed) {
  const auto api = LoadCublasLt();
  if (absl::IsNotFound(api.status())) GTEST_SKIP() << api.status();
  ASSERT_THAT(api, IsOk());
  EXPECT_THAT(CublasLtStatus(*api, CUBLAS_STATUS_SUCCESS, "a product"), IsOk());
  EXPECT_THAT(CublasLtStatus(*api, CUBLAS_STATUS_NOT_SUPPORTED, "a product"),
              IsError(absl::StatusCode::kUnimplemented,
                      HasSubstr("a product: CUBLAS_STATUS_NOT_SUPPORTED")));
  EXPECT_THAT(CublasLtStatus(*api, CUBLAS_STATUS_ALLOC_FAILED, "a product"),
              IsError(absl::StatusCode::kResourceExhausted,
                      HasSubstr("CUBLAS_STATUS_ALLOC_FAILED")));
}

}  // namespace
}  // namespace engram
