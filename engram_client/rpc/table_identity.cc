#include "engram_client/rpc/table_identity.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/wire/error_detail.h"

namespace engram {
namespace {

constexpr uint64_t kMaxLayerRows = uint64_t{1} << 32;  // row ids are uint32
constexpr uint64_t kMaxPartitions = uint64_t{1} << 24;

std::string Label(const std::string& name, const std::string& address) {
  return absl::StrCat("server ", name, " at ", address);
}

absl::StatusOr<RowFormat> ParseRowFormat(const v1::RowFormat& proto) {
  ENGRAM_ASSIGN_OR_RETURN(
      RowFormat format,
      RowFormat::Create(proto.code_dtype(), proto.scale_dtype(), proto.width(),
                        proto.block_size()));
  if (format.row_bytes() != proto.row_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("row_bytes is ", proto.row_bytes(), ", the format makes ",
                     format.row_bytes()));
  }
  return format;
}

absl::StatusOr<TableInfo::Layer> ParseLayer(const v1::LayerInfo& proto,
                                            uint64_t partition_rows) {
  const uint64_t rows = proto.row_count();
  if (rows == 0 || rows > kMaxLayerRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", proto.layer_id(), " has ", rows,
                     " rows, not within 1 .. ", kMaxLayerRows));
  }
  const uint64_t partitions = (rows - 1) / partition_rows + 1;
  if (partitions != proto.partition_count() || partitions > kMaxPartitions) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", proto.layer_id(), " has ",
                     proto.partition_count(), " partitions; its rows make ",
                     partitions, ", the limit is ", kMaxPartitions));
  }
  return TableInfo::Layer{LayerId{proto.layer_id()}, rows,
                          static_cast<uint32_t>(partitions)};
}

}  // namespace

absl::StatusOr<TableInfo> ParseTableInfo(const v1::GetTableResponse& response) {
  TableInfo table;
  table.version = response.version();
  if (table.version.empty() || response.server_name().empty()) {
    return absl::InvalidArgumentError("no table version or no server name");
  }
  ENGRAM_ASSIGN_OR_RETURN(table.config, ParseConfig(response.config_json()));
  ENGRAM_ASSIGN_OR_RETURN(table.row_format,
                          ParseRowFormat(response.row_format()));
  table.partition_rows = response.partition_rows();
  if (!std::has_single_bit(table.partition_rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partition_rows ", table.partition_rows, " is not a power of two"));
  }
  for (const v1::LayerInfo& proto : response.layers()) {
    ENGRAM_ASSIGN_OR_RETURN(const TableInfo::Layer layer,
                            ParseLayer(proto, table.partition_rows));
    for (const TableInfo::Layer& other : table.layers) {
      if (other.layer_id != layer.layer_id) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", proto.layer_id(), " stands twice"));
    }
    table.layers.push_back(layer);
  }
  if (table.layers.empty()) return absl::InvalidArgumentError("no layers");
  return table;
}

TableIdentity::TableIdentity(std::vector<std::string> addresses,
                             std::string expected_version)
    : expected_version_(std::move(expected_version)) {
  for (std::string& address : addresses) {
    Add(static_cast<ServerIndex>(members_.size()), std::move(address));
  }
}

void TableIdentity::Add(ServerIndex server, std::string address) {
  MutexLock lock(&mutex_);
  if (server >= members_.size()) members_.resize(server + 1);
  members_[server] = {.address = std::move(address)};
}

void TableIdentity::Remove(ServerIndex server) {
  MutexLock lock(&mutex_);
  members_[server] = {};
}

void TableIdentity::SetLeaving(ServerIndex server, bool leaving) {
  MutexLock lock(&mutex_);
  members_[server].leaving = leaving;
}

absl::Status TableIdentity::Admit(ServerIndex server,
                                  const v1::GetTableResponse& response) {
  MutexLock lock(&mutex_);
  absl::Status status = AdmitLocked(server, response);
  if (ReasonOf(status) == ErrorReason::kWrongTable) {
    members_[server].as = {.wrong_table = status};
  } else if (!status.ok() && conflict_.ok() && !members_[server].leaving) {
    conflict_ = status;
  }
  return status;
}

absl::Status TableIdentity::AdmitLocked(ServerIndex server,
                                        const v1::GetTableResponse& response) {
  const std::string label =
      Label(response.server_name(), members_[server].address);
  const std::string& version = response.version();
  if (!expected_version_.empty() && version != expected_version_) {
    return MakeError(ErrorReason::kWrongTable,
                     absl::StrCat(label, " serves table ", version,
                                  ", not the expected ", expected_version_),
                     {{"asked", expected_version_}, {"served", version}});
  }
  absl::StatusOr<TableInfo> table = ParseTableInfo(response);
  if (!table.ok()) return Annotate(table.status(), label);
  if (table_ != nullptr && table_->version != version) {
    return absl::FailedPreconditionError(absl::StrCat(
        label, " serves table ", version, ", but ", first_server_,
        " serves table ", table_->version, "; two are never mixed"));
  }
  ENGRAM_RETURN_IF_ERROR(CheckName(server, response));
  members_[server].as = {.name = response.server_name(),
                         .instance_id = response.instance_id()};
  if (table_ == nullptr) {
    table_ = std::make_unique<const TableInfo>(*std::move(table));
    first_server_ = label;
  }
  return absl::OkStatus();
}

absl::Status TableIdentity::CheckName(
    ServerIndex server, const v1::GetTableResponse& response) const {
  for (ServerIndex i = 0; i < members_.size(); ++i) {
    const Member& other = members_[i];
    // The same instance at two addresses is one server reached twice.
    if (i == server || other.leaving ||
        other.as.name != response.server_name() ||
        other.as.instance_id == response.instance_id()) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "two servers of one name, ", response.server_name(), ": at ",
        other.address, " (instance ", other.as.instance_id, ") and at ",
        members_[server].address, " (instance ", response.instance_id(), ")"));
  }
  return absl::OkStatus();
}

void TableIdentity::Release(ServerIndex server) {
  MutexLock lock(&mutex_);
  members_[server].as = {};
}

bool TableIdentity::HasSuccessor(ServerIndex server) const {
  MutexLock lock(&mutex_);
  const Admitted& as = members_[server].as;
  for (const Member& other : members_) {
    if (!other.leaving && !as.name.empty() && other.as.name == as.name &&
        other.as.instance_id > as.instance_id) {
      return true;
    }
  }
  return false;
}

const TableInfo* TableIdentity::table() const {
  MutexLock lock(&mutex_);
  return table_.get();
}

absl::Status TableIdentity::conflict() const {
  MutexLock lock(&mutex_);
  if (!conflict_.ok() || table_ != nullptr) return conflict_;
  absl::Status wrong_table;
  for (const Member& member : members_) {
    if (member.address.empty()) continue;
    if (member.as.wrong_table.ok()) return absl::OkStatus();
    wrong_table.Update(member.as.wrong_table);
  }
  return wrong_table;
}

}  // namespace engram
