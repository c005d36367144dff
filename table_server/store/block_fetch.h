#ifndef ENGRAM_TABLE_SERVER_STORE_BLOCK_FETCH_H_
#define ENGRAM_TABLE_SERVER_STORE_BLOCK_FETCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/manifest.h"
#include "table_server/store/partition_index.h"
#include "table_server/store/read_pool.h"
#include "table_server/tier/row_fetch.h"

namespace engram {

// Rows that lie in one block of a partition.
struct BlockRead {
  PartitionId partition;
  uint32_t block = 0;  // row of the partition / rows of a block
  uint32_t first = 0;  // of the slots, by row
  uint32_t count = 0;
};

// A fetch from a store that keeps so many rows in a block: two rows of one are
// one read. Stores say how a block is read.
class BlockFetch : public ReadJob {
 public:
  struct Table {
    const Manifest& manifest;
    const StoredIndex& index;
    absl::string_view store;  // for messages; outlives the fetch
    uint64_t rows_per_block = 0;
  };

  BlockFetch(Table table, RowFetch fetch);

  // NOT_FOUND: a partition that is not there, or a row beyond the table.
  absl::StatusOr<size_t> Plan() final;
  absl::Status Read(size_t i) final;

 protected:
  // Calls CopyRows with the bytes of the block, once, and returns OK. Never
  // NOT_FOUND: a block that the disk has lost is DATA_LOSS.
  virtual absl::Status ReadBlock(const PartitionRef& ref,
                                 const BlockRead& read) = 0;
  void CopyRows(const BlockRead& read, absl::Span<const std::byte> block);

  size_t layer_index() const { return fetch_.layer_index; }
  const Manifest& manifest() const { return table_.manifest; }

 private:
  absl::Status CheckIsThere(const BlockRead& read) const;

  const Table table_;
  const RowFetch fetch_;
  const size_t row_bytes_;
  std::vector<BlockRead> reads_;
  std::vector<uint32_t> slots_;  // those of a read stand together
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_BLOCK_FETCH_H_
