#include "table_server/loading/direct_column.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "core/base/mapped_file.h"
#include "core/base/page_buffer.h"
#include "table_server/loading/checkpoint_source.h"
#include "table_server/loading/table_source.h"
#include "tests/testing/checkpoint_maker.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace engram {
namespace {

using ::engram::test::CheckpointMaker;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::engram::test::TempDir;
using ::testing::HasSubstr;

// Some file systems do not.
bool SaysWhatIsCached(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  char byte = 0;
  const iovec one = {&byte, 1};
  const bool says =
      preadv2(fd, &one, 1, 0, RWF_NOWAIT) == 1 || errno != EOPNOTSUPP;
  close(fd);
  return says;
}

void Forget(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fsync(fd), 0);
  EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(fd);
}

class DirectColumnTest : public ::testing::Test {
 protected:
  DirectColumnTest() {
    CheckpointMaker("tiny").Write(dir_.path());
    EXPECT_THAT(test::WriteManifest(dir_.path(), {.thread_count = 1}), IsOk());
    auto source = OpenCheckpointSource(dir_.path());
    EXPECT_THAT(source, IsOk());
    source_.emplace(*std::move(source));
    auto buffer =
        PageBuffer::Allocate(Codes().bytes.size() + DirectColumn::kSlackBytes);
    EXPECT_THAT(buffer, IsOk());
    buffer_ = *std::move(buffer);
  }

  const TensorView& Codes() const {
    return source_->checkpoint->layers()[1].embed_weight;
  }
  // Null where the file system has no direct reads.
  std::unique_ptr<DirectColumn> Open() {
    return DirectColumn::Open(Codes(), StoreFiles::Disk());
  }

  void ExpectPartitionsOfTheCheckpoint(bool mapped, size_t piece_rows) {
    const Manifest& manifest = source_->manifest;
    CheckpointSource files(
        *source_->checkpoint, manifest,
        [&](const TensorView&) { return mapped; },
        piece_rows * manifest.row_format().row_bytes());
    for (uint32_t p = 0; p < manifest.partition_count(1); ++p) {
      std::vector<std::byte> got(manifest.RowsIn(1, PartitionId{p}) *
                                 manifest.row_format().row_bytes());
      std::vector<std::byte> wanted(got.size());
      size_t told = 0;
      size_t pieces = 0;
      const auto on_bytes = [&](size_t bytes) {
        told += bytes;
        ++pieces;
        return absl::OkStatus();
      };
      const PartitionRef ref{manifest.layers()[1].layer_id, PartitionId{p}};
      ASSERT_THAT(files.Read(ref, absl::MakeSpan(got), on_bytes), IsOk());
      ASSERT_THAT(source_->checkpoint->PackRows(
                      1, p * manifest.partition_rows(), absl::MakeSpan(wanted)),
                  IsOk());
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(told, got.size());
      const uint64_t rows = manifest.RowsIn(1, PartitionId{p});
      EXPECT_EQ(pieces, (rows + piece_rows - 1) / piece_rows);
    }
  }

  const TempDir dir_;
  std::optional<TableSource> source_;
  PageBuffer buffer_;
};

TEST_F(DirectColumnTest, ReadsAnyPlace) {
  const auto column = Open();
  if (column == nullptr) GTEST_SKIP() << "no direct reads in " << dir_.path();
  const absl::Span<const std::byte> wanted = Codes().bytes;
  const size_t places[][2] = {{0, 1},         {0, wanted.size()},
                              {4095, 2},      {4096, 4096},
                              {12345, 54321}, {wanted.size() - 1, 1}};
  for (const auto& [at, size] : places) {
    const auto got = column->Read(at, size, buffer_.bytes());
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(*got, wanted.subspan(at, size)) << at << " " << size;
  }
}

TEST_F(DirectColumnTest, ACutFileIsToldAsSuch) {
  const auto column = Open();
  if (column == nullptr) GTEST_SKIP() << "no direct reads in " << dir_.path();
  const std::string& path = Codes().file->path();
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(column->Read(0, Codes().bytes.size(), buffer_.bytes()),
              IsError(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

TEST_F(DirectColumnTest, KnowsWhatIsCached) {
  const std::string path = Codes().file->path();
  if (Open() == nullptr || !SaysWhatIsCached(path)) {
    GTEST_SKIP() << "not known in " << dir_.path();
  }
  test::ReadAll(path);
  EXPECT_TRUE(DirectColumn::IsCached(Codes()));
  source_.reset();  // what is mapped stays in it
  Forget(path);
  const auto file = MappedFile::Open(path);
  ASSERT_THAT(file, IsOk());
  TensorView all;
  all.bytes = (*file)->bytes();
  all.file = *file;
  EXPECT_FALSE(DirectColumn::IsCached(all));
}

TEST_F(DirectColumnTest, PartitionsAreThoseOfTheCheckpoint) {
  for (const bool mapped : {true, false}) {
    if (!mapped && Open() == nullptr) {
      GTEST_SKIP() << "no direct reads in " << dir_.path();
    }
    // All at once, and the last piece shorter than the others.
    for (const size_t piece_rows : {size_t{1} << 20, size_t{7}}) {
      ExpectPartitionsOfTheCheckpoint(mapped, piece_rows);
    }
  }
}

}  // namespace
}  // namespace engram
