#ifndef ENGRAM_TABLE_SERVER_SERVICE_MESSAGES_H_
#define ENGRAM_TABLE_SERVER_SERVICE_MESSAGES_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <vector>

#include "absl/status/status.h"
#include "core/wire/layer_partitions.h"
#include "engram/v1/table.pb.h"
#include "table_server/partitions/partition_set.h"

namespace engram {

// A message that gRPC gave as bytes. INVALID_ARGUMENT: it is none of the kind.
absl::Status ParseMessage(grpc::ByteBuffer& bytes,
                          google::protobuf::Message& message);

// The message that ends a gather of a stream with an error.
grpc::ByteBuffer StreamError(uint64_t call_id, const absl::Status& status);

// What a snapshot says of each layer, moved out of it.
LayerPartitionsList ToLayerPartitions(
    std::vector<PartitionSet::LayerBitmap> layers);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_SERVICE_MESSAGES_H_
