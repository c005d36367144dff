#include "engram_client/ctl/heat_recordings.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"
#include "core/wire/error_detail.h"
#include "engram/v1/table.grpc.pb.h"
#include "engram_client/ctl/table_calls.h"

namespace engram::ctl {

HeatRecordings::HeatRecordings(const std::vector<std::string>& addresses,
                               Options options)
    : options_(options), heats_(addresses.size()) {
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < addresses.size(); ++i) {
    calls_.push_back(std::make_unique<Call>());
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    calls_[i]->thread =
        std::thread([this, address = addresses[i], i] { Run(address, i); });
  }
}

HeatRecordings::~HeatRecordings() {
  {
    MutexLock lock(&mutex_);
    for (const auto& call : calls_) call->context.TryCancel();
  }
  Take();
}

void HeatRecordings::Run(const std::string& address, size_t index) {
  HeatReader reader;
  const absl::Status status = Record(address, index, reader);
  ServerHeat& heat = heats_[index];
  heat = std::move(reader.heat());
  heat.address = address;
  if (!status.ok()) {
    heat.error = std::string(status.message());
    if (heat.error.empty())
      heat.error = absl::StatusCodeToString(status.code());
  }
  MutexLock lock(&mutex_);
  calls_[index]->ended = true;
}

absl::Status HeatRecordings::Record(const std::string& address, size_t index,
                                    HeatReader& reader) {
  TableCalls server(address);
  ENGRAM_ASSIGN_OR_RETURN(const v1::GetTableResponse table,
                          server.GetTable(absl::Now() + options_.timeout));
  ENGRAM_RETURN_IF_ERROR(reader.SetTable(table));
  v1::RecordHeatRequest request;
  request.set_version(table.version());
  request.set_duration_ms(absl::ToInt64Milliseconds(options_.duration));
  request.set_max_sampled_rows(options_.max_sampled_rows);

  Call* call = nullptr;
  {
    MutexLock lock(&mutex_);
    call = calls_[index].get();
  }
  call->context.set_deadline(
      absl::ToChronoTime(absl::Now() + options_.duration + options_.timeout));
  const auto stub = v1::TableService::NewStub(MakeChannel(address));
  const auto messages = stub->RecordHeat(&call->context, request);
  v1::RecordHeatResponse message;
  absl::Status status;
  while (messages->Read(&message)) {
    if (message.has_progress()) {
      MutexLock lock(&mutex_);
      call->recording = true;
      call->progress = message.progress();
    }
    if (!status.ok()) continue;
    status = reader.Add(message);
    if (!status.ok()) call->context.TryCancel();
  }
  const absl::Status ended = FromGrpcStatus(messages->Finish());
  ENGRAM_RETURN_IF_ERROR(status);
  ENGRAM_RETURN_IF_ERROR(ended);
  return reader.Finish();
}

HeatRecordings::Progress HeatRecordings::progress() const {
  MutexLock lock(&mutex_);
  Progress sum;
  for (const auto& call : calls_) {
    if (!call->recording) continue;
    const uint64_t elapsed_ms = call->progress.elapsed_ms();
    sum.elapsed_ms =
        sum.recording == 0 ? elapsed_ms : std::min(sum.elapsed_ms, elapsed_ms);
    ++sum.recording;
    sum.lookups += call->progress.lookups();
    sum.sampled_rows += call->progress.sampled_rows();
  }
  return sum;
}

bool HeatRecordings::ended() const {
  MutexLock lock(&mutex_);
  return std::all_of(calls_.begin(), calls_.end(),
                     [](const auto& call) { return call->ended; });
}

std::vector<ServerHeat> HeatRecordings::Take() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    for (const auto& call : calls_) threads.push_back(std::move(call->thread));
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  return std::move(heats_);
}

}  // namespace engram::ctl
