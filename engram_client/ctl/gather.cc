// engramctl gather: rows of one layer from the table servers to a file.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/flag_checks.h"
#include "core/base/page_buffer.h"
#include "core/base/progress.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/safetensors.h"
#include "engram_client/ctl/commands.h"
#include "engram_client/ctl/format.h"
#include "engram_client/ctl/gather_ids.h"
#include "engram_client/ctl/table_addresses.h"
#include "engram_client/ctl/tensor_file.h"
#include "engram_client/table_client.h"
#include "engram_client/table_servers.h"

namespace engram::ctl {
namespace {

struct GatherFlags {
  std::string tables;
  uint32_t layer = 0;
  std::string in;
  std::string out;
  double timeout_seconds = 60;
};

absl::Status WriteRows(const GatherFlags& flags,
                       const std::vector<RowId>& row_ids,
                       absl::Span<const std::byte> packed_rows) {
  const std::vector<int64_t> ids(row_ids.begin(), row_ids.end());
  const uint64_t count = ids.size();
  const uint64_t row_bytes = count > 0 ? packed_rows.size() / count : 0;
  return WriteTensorFile(
      flags.out,
      {{{LayerTensorName(flags.layer, "row_ids"), "I64", {count}},
        BytesOf(ids)},
       {{LayerTensorName(flags.layer, "packed_rows"), "U8", {count, row_bytes}},
        packed_rows}});
}

absl::StatusOr<int> RunGather(const GatherFlags& flags) {
  TableClient::Options options;
  options.connect_timeout = absl::Seconds(flags.timeout_seconds);
  ENGRAM_ASSIGN_OR_RETURN(TableServers tables, ParseTableServers(flags.tables));
  options.addresses = std::move(tables.addresses);
  options.members = std::move(tables.members);
  ENGRAM_ASSIGN_OR_RETURN(const SafetensorsFile file,
                          SafetensorsFile::Open(flags.in));
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<TableClient> client,
                          TableClient::Create(std::move(options)));
  const LayerId layer{flags.layer};
  const absl::StatusOr<std::vector<RowId>> row_ids =
      ReadRowIds(file, client->table(), layer);
  if (!row_ids.ok()) return Annotate(row_ids.status(), flags.in);

  const size_t row_bytes = client->table().row_format.row_bytes();
  ENGRAM_ASSIGN_OR_RETURN(PageBuffer rows,
                          PageBuffer::Allocate(row_ids->size() * row_bytes));
  const absl::Time start = absl::Now();
  const std::unique_ptr<GatherHandle> gather =
      client->Prefetch({{layer, *row_ids, rows.bytes()}},
                       start + absl::Seconds(flags.timeout_seconds), nullptr);
  ENGRAM_RETURN_IF_ERROR(gather->Wait());
  const absl::Duration elapsed = absl::Now() - start;
  const GatherStats stats = gather->stats();
  ENGRAM_RETURN_IF_ERROR(WriteRows(flags, *row_ids, rows.bytes()));
  std::printf(
      "layer %u of table %s: %s rows, %s unique, %s over the wire, %u calls to "
      "%u servers, %.1f ms\n",
      flags.layer, ShortVersion(client->table().version).c_str(),
      WithCommas(stats.rows).c_str(), WithCommas(stats.unique_rows).c_str(),
      FormatBytes(stats.bytes_received).c_str(), stats.calls, stats.servers,
      absl::ToDoubleMilliseconds(elapsed));
  return 0;
}

}  // namespace

void AddGather(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GatherFlags>();
  CLI::App* command = app.add_subcommand(
      "gather", "Fetch rows of one layer from table servers");
  command->add_option("--tables", flags->tables, kTablesHelp)->required();
  command->add_option("--layer", flags->layer, "layer id, as in config.json")
      ->required()
      ->check(WholeNumber(0, UINT32_MAX));
  command
      ->add_option("--in", flags->in,
                   "layers.N.row_ids I64 [n], or hash_ids I64 [B, T, layers, "
                   "columns]")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "layers.N.packed_rows U8 [n, row bytes], layers.N.row_ids")
      ->required();
  command
      ->add_option("--timeout-seconds", flags->timeout_seconds,
                   "to connect, and for the gather (default 60)")
      ->check(Seconds(0.001, 86400));
  command->footer(
      "Example:\n  engramctl gather --tables 127.0.0.1:7001,127.0.0.1:7002 "
      "--layer 1 \\\n    --in ids.safetensors --out rows.safetensors");
  command->callback(
      [flags, &action] { action = [flags] { return RunGather(*flags); }; });
}

}  // namespace engram::ctl
