#ifndef ENGRAM_TABLE_SERVER_LOADING_MAKE_PARTITION_SOURCE_H_
#define ENGRAM_TABLE_SERVER_LOADING_MAKE_PARTITION_SOURCE_H_

#include <cstddef>
#include <memory>

#include "table_server/loading/partition_source.h"
#include "table_server/loading/table_source.h"

namespace engram {

// The checkpoint of a table, on a disk or on a server; null: it has none.
// `source` must outlive it.
std::unique_ptr<PartitionSource> MakePartitionSource(const TableSource& source);

// Threads of which each reads a partition: one for each core, at least 8.
size_t LoadThreads();

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_MAKE_PARTITION_SOURCE_H_
