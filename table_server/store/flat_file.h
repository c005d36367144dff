#ifndef ENGRAM_TABLE_SERVER_STORE_FLAT_FILE_H_
#define ENGRAM_TABLE_SERVER_STORE_FLAT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "table_server/store/flat_page.h"
#include "table_server/store/store_files.h"

namespace engram {

// Files of single partitions, as flat_page.h draws them. Errors name the path.

// The file as `header` says, synced; its directory is not. On an error what is
// left under `path` is no such file. REQUIRES: packed has header.rows rows.
absl::Status WriteFlatFile(StoreFiles& files, const std::string& path,
                           const FlatHeader& header,
                           absl::Span<const std::byte> packed);

// That the file is of the size and has the header that are wanted; pages are
// not looked at. DATA_LOSS: they differ.
absl::Status CheckFlatFile(StoreFiles& files, const std::string& path,
                           const FlatHeader& wanted);

// Every page checked; `on_bytes` as PartitionSource::Read has it. REQUIRES: out
// has room for header.rows rows, and no more.
absl::Status ReadFlatFile(
    const StoreFile& file, const std::string& path, const FlatHeader& header,
    absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes);

// One page, checked, into `page`, which is aligned. REQUIRES: the file has it.
absl::Status ReadFlatPage(const StoreFile& file, const std::string& path,
                          const FlatHeader& header, const FlatSeal& seal,
                          uint32_t number, absl::Span<std::byte> page);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_FLAT_FILE_H_
