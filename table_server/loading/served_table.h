#ifndef ENGRAM_TABLE_SERVER_LOADING_SERVED_TABLE_H_
#define ENGRAM_TABLE_SERVER_LOADING_SERVED_TABLE_H_

#include "absl/status/statusor.h"
#include "table_server/loading/table_source.h"
#include "table_server/loading/tier_options.h"

namespace engram {

// The table that a server serves: OpenTableSource, where what a local store
// keeps of a table (store_manifest.h) stands in for what is missing, so that a
// server that has its copy starts without the network:
//
//   source peers, no manifest_path   the manifest is the store's, of the table
//                                    version that a server served last
//   a checkpoint by URL that does    the manifest is manifest_path's or the
//   not answer (UNAVAILABLE)         store's; rows come from the store and from
//                                    peers until the server starts again
//
// Errors of OpenTableSource and, for "peers", of LoadServedManifest.
absl::StatusOr<TableSource> OpenServedTable(const TableSourceOptions& options,
                                            const TierOptions& tiers);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_SERVED_TABLE_H_
