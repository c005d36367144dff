#include "core/base/malloc_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::internal::ApplyMallocSettings;
using ::engram::internal::MallocSetting;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MallocTuningTest, LargeBlocksAreNotMappedOneByOne) {
  TuneMallocForLargeMessages();
  const size_t mapped = internal::MappedBlocks();
  for (const size_t size : {size_t{1} << 20, size_t{13} << 20}) {
    for (int i = 0; i < 2; ++i) {
      const auto block = std::make_unique<char[]>(size);
      std::memset(block.get(), i, size);
      EXPECT_EQ(internal::MappedBlocks(), mapped);
    }
  }
  EXPECT_EQ(internal::MappedBlocks(), mapped);
}

TEST(MallocTuningTest, ThisMallocTakesItsSettings) {
  EXPECT_THAT(
      ApplyMallocSettings(internal::MallocSettings(), internal::SetMalloc),
      IsOk());
}

TEST(MallocTuningTest, NamesWhatIsRefusedAndMakesTheRest) {
  const std::vector<MallocSetting> settings = {
      {"first", 1, 5}, {"too_large", 2, 1 << 30}, {"last", 3, 7}};
  std::vector<std::string> made;
  EXPECT_THAT(ApplyMallocSettings(settings,
                                  [&](const MallocSetting& setting) {
                                    if (setting.value > 100) return false;
                                    made.push_back(setting.name);
                                    return true;
                                  }),
              IsError(absl::StatusCode::kInternal,
                      AllOf(HasSubstr("too_large=1073741824"),
                            Not(HasSubstr("first")), Not(HasSubstr("last")))));
  EXPECT_THAT(made, ::testing::ElementsAre("first", "last"));
}

}  // namespace
}  // namespace engram
