#include "table_server/store/rocks_db.h"

#include <rocksdb/convenience.h>
#include <rocksdb/sst_partitioner.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "table_server/store/rocks_log.h"
#include "table_server/store/store_dir.h"
#include "table_server/store/store_files.h"

namespace engram {
namespace {

constexpr size_t kPageBytes = 4096;
// Beside the value: key, lengths, restart point, checksum.
constexpr size_t kBlockOverheadBytes = 64;
// Markers that may wait to be flushed before RocksDB lets their writers wait:
// as many as loads mostly end at a time.
constexpr int kMarkerBuffers = 16;

rocksdb::Options MakeOptions(const RocksDatabase::Options& wanted,
                             rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.no_block_cache = true;
  // RocksDB ends a block before it would have more than this, so that a value
  // has one for itself. It aligns blocks to pages, but takes no other sizes
  // then.
  blocks.block_size = std::bit_ceil(
      std::max(kPageBytes, wanted.block_bytes + kBlockOverheadBytes));
  blocks.block_align = true;
  blocks.format_version = 5;
  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = !wanted.read_only;
  options.create_missing_column_families = !wanted.read_only;
  // Those that are damaged or gone are found when they are read.
  options.paranoid_checks = !wanted.read_only && !wanted.takes_damaged;
  options.compression = rocksdb::kNoCompression;
  options.disable_auto_compactions = true;
  options.sst_partitioner_factory =
      rocksdb::NewSstPartitionerFixedPrefixFactory(sizeof(PartitionId));
  options.use_direct_reads = wanted.direct_io;
  options.use_direct_io_for_flush_and_compaction = wanted.direct_io;
  options.max_open_files = static_cast<int>(wanted.max_open_files);
  // Whoever writes next tells RocksDB to go on.
  options.max_bgerror_resume_count = 0;
  options.info_log = std::make_shared<RocksLog>(wanted.dir);
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  return options;
}

// Those that are there, and one's own.
absl::StatusOr<std::vector<std::string>> FamiliesOf(
    const RocksDatabase::Options& wanted, const rocksdb::Options& options) {
  std::vector<std::string> names;
  const rocksdb::Status listed =
      rocksdb::DB::ListColumnFamilies(options, wanted.dir, &names);
  if (!listed.ok() && !listed.IsPathNotFound() && !listed.IsIOError()) {
    return FromRocks(listed, wanted.dir);
  }
  if (names.empty()) names.push_back(rocksdb::kDefaultColumnFamilyName);
  if (wanted.read_only) return names;
  std::vector<std::string> own = wanted.families;
  own.push_back(wanted.marker_family);
  for (const std::string& name : own) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

// As RocksStore names them: <16 digits>/markers or <16 digits>/layer-<id>.
bool IsOfAStore(absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos ||
      !IsVersionDirName(name.substr(0, slash))) {
    return false;
  }
  name.remove_prefix(slash);
  uint32_t layer = 0;
  return name == "/markers" || (absl::ConsumePrefix(&name, "/layer-") &&
                                absl::SimpleAtoi(name, &layer));
}

PartitionId PartitionOf(const std::string& key) {
  uint32_t partition = 0;
  for (size_t i = 0; i < 4 && i < key.size(); ++i) {
    partition = partition << 8 | static_cast<uint8_t>(key[i]);
  }
  return PartitionId{partition};
}

}  // namespace

RocksKey::RocksKey(uint32_t first, uint32_t second) {
  for (int i = 0; i < 4; ++i) {
    const int shift = 24 - 8 * i;
    bytes_[i] = static_cast<char>(first >> shift);
    bytes_[4 + i] = static_cast<char>(second >> shift);
  }
}

absl::Status FromRocks(const rocksdb::Status& status, const std::string& what) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNotFound() || status.IsPathNotFound()) {
    return absl::NotFoundError(message);
  }
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
  // RocksDB has it as text only.
  if (status.IsIOError() && absl::StrContains(message, strerror(EIO))) {
    return AsMediaError(absl::UnavailableError(message));
  }
  return absl::UnavailableError(message);
}

uint64_t RocksDatabase::DiskBytesOfBlock(size_t value_bytes) {
  return (value_bytes + kBlockOverheadBytes + kPageBytes - 1) / kPageBytes *
         kPageBytes;
}

uint32_t RocksDatabase::RowsPerBlock(size_t row_bytes) {
  return static_cast<uint32_t>(
      std::max<size_t>(1, (kPageBytes - kBlockOverheadBytes) / row_bytes));
}

RocksDatabase::RocksDatabase(const Options& options)
    : files_(std::make_shared<CountingFiles>(options.files)),
      env_(rocksdb::NewCompositeEnv(files_)),
      options_(MakeOptions(options, env_.get())) {}

absl::StatusOr<std::unique_ptr<RocksDatabase>> RocksDatabase::Open(
    const Options& options) {
  auto opened = std::unique_ptr<RocksDatabase>(new RocksDatabase(options));
  ENGRAM_RETURN_IF_ERROR(opened->OpenFamilies(options));
  return opened;
}

absl::Status RocksDatabase::OpenFamilies(const Options& options) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          FamiliesOf(options, options_));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    families.emplace_back(name, options_);
    // Written key by key, each in a small file.
    if (name == options.marker_family) {
      families.back().options.disable_auto_compactions = options.takes_damaged;
      families.back().options.sst_partitioner_factory = nullptr;
      families.back().options.max_write_buffer_number = kMarkerBuffers;
    }
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  ENGRAM_RETURN_IF_ERROR(FromRocks(
      options.read_only
          ? rocksdb::DB::OpenForReadOnly(options_, options.dir, families,
                                         &handles, &db)
          : rocksdb::DB::Open(options_, options.dir, families, &handles, &db),
      options.dir));
  db_.reset(db);
  own_.resize(options.families.size() + 1);
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto own =
        std::find(options.families.begin(), options.families.end(), names[i]);
    if (own != options.families.end() || names[i] == options.marker_family) {
      own_[own - options.families.begin()] = handles[i];
    } else {
      (IsOfAStore(names[i]) ? others_ : strange_).push_back(handles[i]);
    }
  }
  return absl::OkStatus();
}

RocksDatabase::~RocksDatabase() {
  if (db_ == nullptr) return;
  for (const auto* families : {&own_, &others_, &strange_}) {
    for (rocksdb::ColumnFamilyHandle* family : *families) {
      if (family != nullptr) db_->DestroyColumnFamilyHandle(family);
    }
  }
}

std::vector<RocksDatabase::BlockFile> RocksDatabase::FilesOf(size_t i) const {
  if (family(i) == nullptr) return {};
  return FilesOf(*db_, family(i));
}

std::vector<RocksDatabase::BlockFile> RocksDatabase::FilesOf(
    rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  rocksdb::ColumnFamilyMetaData about;
  db.GetColumnFamilyMetaData(family, &about);
  std::vector<BlockFile> files;
  for (const rocksdb::LevelMetaData& level : about.levels) {
    for (const rocksdb::SstFileMetaData& file : level.files) {
      files.push_back({file.name, PartitionOf(file.smallestkey),
                       PartitionOf(file.largestkey), file.size, level.level});
    }
  }
  return files;
}

absl::Status RocksDatabase::DeleteFilesIn(rocksdb::ColumnFamilyHandle* family,
                                          PartitionId first, PartitionId last) {
  const RocksKey begin = RocksKey::OfBlock(first, 0);
  const RocksKey end = RocksKey::OfBlock(PartitionId{ToInt(last) + 1}, 0);
  const rocksdb::Slice from = begin.slice();
  const rocksdb::Slice to = end.slice();
  return FromRocks(
      rocksdb::DeleteFilesInRange(db_.get(), family, &from, &to, false),
      db_->GetName());
}

absl::Status RocksDatabase::DeleteFiles(size_t i, PartitionId first,
                                        PartitionId last) {
  ENGRAM_RETURN_IF_ERROR(DeleteFilesIn(family(i), first, last));
  for (const BlockFile& file : FilesOf(i)) {
    if (file.level > 0 || file.first < first || file.last > last) continue;
    // Left, since it may lie over others.
    ENGRAM_RETURN_IF_ERROR(MoveToLastLevel(i));
    return DeleteFilesIn(family(i), first, last);
  }
  return absl::OkStatus();
}

absl::Status RocksDatabase::MoveToLastLevel(size_t i) {
  std::vector<std::string> names;
  for (const BlockFile& file : FilesOf(i)) {
    if (file.level == 0) names.push_back(file.name);
  }
  if (names.empty()) return absl::OkStatus();
  rocksdb::CompactionOptions compaction;
  compaction.compression = rocksdb::kNoCompression;
  return FromRocks(
      db_->CompactFiles(compaction, family(i), names, options_.num_levels - 1),
      db_->GetName());
}

uint64_t RocksDatabase::BytesOf(
    const std::vector<rocksdb::ColumnFamilyHandle*>& families) const {
  uint64_t sum = 0;
  for (rocksdb::ColumnFamilyHandle* family : families) {
    uint64_t bytes = 0;
    if (db_->GetIntProperty(family, rocksdb::DB::Properties::kTotalSstFilesSize,
                            &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

uint64_t RocksDatabase::index_bytes() const {
  uint64_t sum = 0;
  for (rocksdb::ColumnFamilyHandle* family : own_) {
    uint64_t bytes = 0;
    if (family != nullptr &&
        db_->GetIntProperty(family,
                            rocksdb::DB::Properties::kEstimateTableReadersMem,
                            &bytes)) {
      sum += bytes;
    }
  }
  return sum;
}

uint64_t RocksDatabase::background_errors() const {
  uint64_t errors = 0;
  // Of the whole database, whichever family is asked.
  db_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors);
  return errors;
}

std::vector<std::string> RocksDatabase::Others() const {
  std::vector<std::string> names;
  for (const rocksdb::ColumnFamilyHandle* family : others_) {
    names.push_back(family->GetName());
  }
  return names;
}

absl::Status RocksDatabase::DropOthers() {
  if (others_.empty()) return absl::OkStatus();
  ENGRAM_RETURN_IF_ERROR(
      FromRocks(db_->DropColumnFamilies(others_), db_->GetName()));
  for (rocksdb::ColumnFamilyHandle* family : others_) {
    db_->DestroyColumnFamilyHandle(family);
  }
  others_.clear();
  return absl::OkStatus();
}

}  // namespace engram
