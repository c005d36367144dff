#ifndef ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_TEST_FILE_H_
#define ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_TEST_FILE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/check.h"
#include "core/model/safetensors.h"
#include "engram_client/ctl/tensor_file.h"
#include "tests/testing/temp_dir.h"

namespace engram::ctl {

// `tensors` as a mapped safetensors file.
inline SafetensorsFile MakeFile(const test::TempDir& dir,
                                const std::vector<OutputTensor>& tensors) {
  const std::string path = dir.File("in.safetensors");
  const absl::Status written = WriteTensorFile(path, tensors);
  EXPECT_TRUE(written.ok()) << written;
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ENGRAM_CHECK(file.ok());
  return *std::move(file);
}

}  // namespace engram::ctl

#endif  // ENGRAM_TESTS_UNIT_ENGRAM_CLIENT_CTL_TEST_FILE_H_
