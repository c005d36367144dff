#include "table_server/loading/http_table.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "core/model/checkpoint_index.h"
#include "tests/unit/table_server/loading/http_fixture.h"

namespace engram {
namespace {

using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

class HttpTableTest : public test::HttpLoadingTest {
 protected:
  absl::StatusOr<std::vector<HttpLayer>> Find() {
    const auto manifest = Manifest::Load(dir_.File(kManifestFileName));
    if (!manifest.ok()) return manifest.status();
    return FindHttpLayers(*reader_, folder_, *manifest, test::GoOn);
  }
  // That holds the table of the first layer.
  std::string FirstFile() { return maker_.index().begin()->second; }
  void WriteIndexed() {
    maker_.Write(dir_.path());
    Upload();
  }
};

TEST_F(HttpTableTest, FindsTheTensorsAndReadsNoData) {
  const auto layers = Find();
  ASSERT_THAT(layers, IsOk());
  ASSERT_EQ(layers->size(), 2U);
  const auto& codes = maker_.Tensor("layers.1.engram.embed.weight");
  const HttpTensor& found = (*layers)[0].codes;
  ASSERT_EQ(found.range.bytes.size(), codes.bytes.size());
  const std::string& file = server_->files.at(found.range.url);
  EXPECT_EQ(found.range.file_bytes, file.size());
  EXPECT_EQ(found.etag, server_->etag);
  EXPECT_EQ(std::memcmp(file.data() + found.range.bytes.begin,
                        codes.bytes.data(), codes.bytes.size()),
            0);
  for (const HttpRequest& request : server_->requests()) {
    const bool is_data = absl::EndsWith(request.url, ".safetensors");
    EXPECT_EQ(is_data, request.range.has_value()) << request.url;
    if (is_data) {
      EXPECT_LE(request.range->end, found.range.bytes.begin);
    }
  }
}

TEST_F(HttpTableTest, WithoutAnIndexItIsTheSingleFile) {
  for (auto& tensor : maker_.tensors()) tensor.file = kSingleFileName;
  maker_.index().clear();
  const test::TempDir single;
  maker_.Write(single.path());
  ASSERT_THAT(test::WriteManifest(single.path()), IsOk());
  server_->files.clear();
  for (const std::string& name : single.List()) {
    server_->files[folder_.UrlOf(name)] = test::ReadAll(single.File(name));
  }
  const auto layers = Find();
  ASSERT_THAT(layers, IsOk());
  EXPECT_EQ((*layers)[1].scales.range.url, folder_.UrlOf(kSingleFileName));
}

TEST_F(HttpTableTest, MissingFilesAndTensorsAreNamed) {
  constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
  server_->files.erase(folder_.UrlOf(FirstFile()));
  EXPECT_THAT(Find(), IsError(kNotFound, AllOf(HasSubstr(FirstFile()),
                                               HasSubstr("layers."))));
  Upload();
  server_->files.erase(folder_.UrlOf("config.json"));
  EXPECT_THAT(Find(), IsError(kNotFound, HasSubstr("config.json")));
  Upload();
  std::string& index = FileOf(kIndexFileName);
  absl::StrReplaceAll({{"layers.14.engram.embed.scale", "other"}}, &index);
  EXPECT_THAT(Find(),
              IsError(kNotFound, HasSubstr("layers.14.engram.embed.scale")));
}

TEST_F(HttpTableTest, DamagedHeadersAreRefused) {
  std::string& file = FileOf(FirstFile());
  const std::string whole = file;
  file[7] = '\x7F';
  EXPECT_THAT(Find(), IsError(kInvalid, HasSubstr("the limit is 100000000")));
  file = whole.substr(0, 100);
  EXPECT_THAT(Find(), IsError(kInvalid, HasSubstr("a file of 100 bytes")));
  file = whole.substr(0, whole.size() - 1);
  EXPECT_THAT(Find(), IsError(kInvalid, HasSubstr("truncated")));
  file = std::string(8, '\0') + whole;
  EXPECT_THAT(Find(), IsError(kInvalid, HasSubstr("header of 0 bytes")));
  file = "1234";
  EXPECT_THAT(Find(), IsError(absl::StatusCode::kDataLoss,
                              HasSubstr("ends before byte 4")));
}

TEST_F(HttpTableTest, AnotherCheckpointIsRefused) {
  absl::StrReplaceAll({{"\"engram_pad_id\": 2", "\"engram_pad_id\": 3"},
                       {"\"engram_pad_id\":2", "\"engram_pad_id\":3"}},
                      &FileOf("config.json"));
  EXPECT_THAT(Find(), IsError(kPrecondition, HasSubstr(folder_.url)));
  Upload();
  auto& tensor = maker_.Tensor("layers.1.engram.embed.weight");
  tensor.dtype = "F8_E5M2";
  WriteIndexed();
  EXPECT_THAT(Find(), IsError(kPrecondition, AllOf(HasSubstr("F8_E5M2"),
                                                   HasSubstr("F8_E4M3"))));
}

TEST_F(HttpTableTest, ATensorInTwoFilesIsRefused) {
  auto twin = maker_.Tensor("layers.1.engram.embed.scale");
  twin.file = maker_.Tensor("layers.14.engram.embed.scale").file;
  ASSERT_NE(twin.file, maker_.Tensor(twin.name).file);
  maker_.tensors().push_back(twin);
  WriteIndexed();
  EXPECT_THAT(Find(), IsError(kInvalid, HasSubstr(twin.name)));
}

TEST_F(HttpTableTest, AServerWithoutRangesIsRefusedAtOnce) {
  server_->Then({});  // config.json
  server_->Then({});  // the index
  server_->ThenStatus(200);
  EXPECT_THAT(Find(), IsError(kPrecondition, HasSubstr("ignores ranges")));
}

TEST_F(HttpTableTest, WhoWaitsMayEndIt) {
  const auto manifest = Manifest::Load(dir_.File(kManifestFileName));
  ASSERT_THAT(manifest, IsOk());
  for (int pauses = 0; pauses < 3; ++pauses) {
    int left = pauses;
    const auto wait = [&] {
      return left-- > 0 ? absl::OkStatus() : absl::CancelledError("enough");
    };
    EXPECT_THAT(FindHttpLayers(*reader_, folder_, *manifest, wait),
                IsError(absl::StatusCode::kCancelled, HasSubstr("enough")));
  }
  EXPECT_THAT(FetchManifest(*reader_, folder_,
                            [] { return absl::CancelledError("enough"); }),
              IsError(absl::StatusCode::kCancelled, HasSubstr("enough")));
}

TEST_F(HttpTableTest, TheManifestBesideIt) {
  const auto manifest = FetchManifest(*reader_, folder_, test::GoOn);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->version(),
            Manifest::Load(dir_.File(kManifestFileName))->version());
  FileOf(kManifestFileName) = "{}";
  EXPECT_THAT(FetchManifest(*reader_, folder_, test::GoOn),
              IsError(kInvalid, HasSubstr(folder_.UrlOf(kManifestFileName))));
  server_->files.erase(folder_.UrlOf(kManifestFileName));
  EXPECT_THAT(FetchManifest(*reader_, folder_, test::GoOn),
              IsError(absl::StatusCode::kNotFound,
                      AllOf(HasSubstr("--manifest"), HasSubstr(folder_.url))));
}

TEST(HttpSourceTest, OptionsThatDoNotFitAreRefused) {
  const test::TempDir dir;
  const HttpAccess access{.token_file = dir.Write("token", "s3cret")};
  EXPECT_THAT(OpenTableSource({.checkpoint_dir = dir.path(), .http = access}),
              IsError(kInvalid, HasSubstr("token file")));
  EXPECT_THAT(
      OpenTableSource({.checkpoint_dir = "http://10.0.0.1/m", .http = access}),
      IsError(kInvalid, HasSubstr("plain http")));
  EXPECT_THAT(OpenTableSource({.checkpoint_dir = "https://h/m?x=1"}),
              IsError(kInvalid, HasSubstr("query")));
}

}  // namespace
}  // namespace engram
