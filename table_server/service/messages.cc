#include "table_server/service/messages.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/wire/error_detail.h"

namespace engram {

absl::Status ParseMessage(grpc::ByteBuffer& bytes,
                          google::protobuf::Message& message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a message of ", bytes.Length(),
                   " bytes could not be decoded as ", message.GetTypeName()));
}

grpc::ByteBuffer StreamError(uint64_t call_id, const absl::Status& status) {
  v1::GatherStreamResponse response;
  response.set_call_id(call_id);
  *response.mutable_error() = ToRpcStatusProto(status);
  const grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

LayerPartitionsList ToLayerPartitions(
    std::vector<PartitionSet::LayerBitmap> layers) {
  LayerPartitionsList list;
  for (PartitionSet::LayerBitmap& layer : layers) {
    v1::LayerPartitions* const entry = list.Add();
    entry->set_layer_id(ToInt(layer.layer));
    entry->set_partition_count(layer.partition_count);
    entry->set_bitmap(std::move(layer.bitmap));
  }
  return list;
}

}  // namespace engram
