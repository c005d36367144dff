// How RocksDatabase is opened although files of it are damaged.

#include <rocksdb/sst_file_reader.h>

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "table_server/store/rocks_db.h"

namespace engram {

absl::StatusOr<size_t> RocksDatabase::RemoveDamagedFiles(Options options) {
  options.takes_damaged = true;
  ENGRAM_ASSIGN_OR_RETURN(const auto database, Open(options));
  size_t removed = 0;
  for (auto* families : {&database->own_, &database->others_}) {
    for (rocksdb::ColumnFamilyHandle*& family : *families) {
      ENGRAM_ASSIGN_OR_RETURN(const size_t of_family,
                              database->RemoveDamagedOf(family));
      removed += of_family;
    }
  }
  return removed;
}

std::vector<RocksDatabase::BlockFile> RocksDatabase::FindDamaged(
    rocksdb::ColumnFamilyHandle* family) const {
  std::vector<BlockFile> files = FilesOf(*db_, family);
  std::erase_if(files, [&](const BlockFile& file) { return !IsDamaged(file); });
  return files;
}

namespace {

// What cannot be read at this moment may be as it should be.
bool IsLost(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsPathNotFound();
}

}  // namespace

// As RocksDB does when it opens a database. Blocks are looked at by reads.
bool RocksDatabase::IsDamaged(const BlockFile& file) const {
  const std::string path = db_->GetName() + file.name;
  uint64_t bytes = 0;
  rocksdb::Status status = env_->GetFileSize(path, &bytes);
  if (status.ok() && bytes != file.bytes) {
    status = rocksdb::Status::Corruption(
        absl::StrCat("it has ", bytes, " bytes, not ", file.bytes));
  }
  if (status.ok()) status = rocksdb::SstFileReader(options_).Open(path);
  if (!IsLost(status)) return false;
  spdlog::error("{}: removed from the database: {}", path, status.ToString());
  return true;
}

absl::StatusOr<size_t> RocksDatabase::RemoveDamagedOf(
    rocksdb::ColumnFamilyHandle*& family) {
  const std::vector<BlockFile> damaged = FindDamaged(family);
  if (damaged.empty()) return 0;
  if (absl::EndsWith(family->GetName(), "/markers")) {
    ENGRAM_RETURN_IF_ERROR(RebuildMarkers(family));
    return damaged.size();
  }
  for (const BlockFile& file : damaged) {
    ENGRAM_RETURN_IF_ERROR(DeleteFilesIn(family, file.first, file.last));
  }
  return damaged.size();
}

// RocksDB deletes no file that may lie over others: the markers of those that
// are left are written anew. One of them may be back that was deleted in a file
// that is lost: then its file is gone too, or reads find out what it is.
absl::Status RocksDatabase::RebuildMarkers(
    rocksdb::ColumnFamilyHandle*& family) {
  std::map<std::string, std::string> markers;
  for (const BlockFile& file : FilesOf(*db_, family)) {  // the newest first
    rocksdb::SstFileReader reader(options_);
    const rocksdb::Status opened = reader.Open(db_->GetName() + file.name);
    if (IsLost(opened)) continue;
    ENGRAM_RETURN_IF_ERROR(FromRocks(opened, db_->GetName() + file.name));
    const std::unique_ptr<rocksdb::Iterator> keys(
        reader.NewIterator(rocksdb::ReadOptions()));
    for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
      markers.emplace(keys->key().ToString(), keys->value().ToString());
    }
    if (IsLost(keys->status())) continue;
    ENGRAM_RETURN_IF_ERROR(
        FromRocks(keys->status(), db_->GetName() + file.name));
  }
  const std::string name = family->GetName();
  ENGRAM_RETURN_IF_ERROR(
      FromRocks(db_->DropColumnFamily(family), db_->GetName()));
  db_->DestroyColumnFamilyHandle(std::exchange(family, nullptr));
  rocksdb::Status status = db_->CreateColumnFamily(options_, name, &family);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  for (const auto& [key, marker] : markers) {
    if (status.ok()) status = db_->Put(unlogged, family, key, marker);
  }
  if (status.ok()) status = db_->Flush(rocksdb::FlushOptions(), family);
  return FromRocks(status, db_->GetName());
}

}  // namespace engram
