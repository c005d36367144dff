#include "tests/unit/compute/worker/fakes.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/presets.h"
#include "core/model/token_map.h"

namespace engram::test {

// ---- FakeBlock ----

FakeBlock::FakeBlock()
    : config_(PresetConfig("tiny").value()),
      layout_(EngramLayout::Create(config_).value()),
      row_format_(RowFormat::Create("F8_E4M3", "F8_E8M0", config_.head_dim, 32)
                      .value()) {
  const TokenMap map =
      TokenMap::Create(MadeUpTokenMap(config_), config_).value();
  hasher_ = std::make_unique<NgramHasher>(
      NgramHasher::Create(config_, layout_, map).value());
}

absl::Status FakeBlock::Forward(size_t /*layer_index*/, StreamDtype dtype,
                                absl::Span<const std::byte> packed_rows,
                                absl::Span<const std::byte> streams,
                                absl::Span<const uint8_t> mask,
                                const BlockOutputs& outputs) const {
  const size_t token_bytes = TokenStreamBytes(config_, dtype);
  const size_t tokens = streams.size() / token_bytes;
  std::function<absl::Status(size_t)> hook;
  {
    MutexLock lock(&mutex_);
    ++forwards_;
    hook = hook_;
  }
  ENGRAM_RETURN_IF_ERROR(health());
  if (hook) ENGRAM_RETURN_IF_ERROR(hook(tokens));
  const size_t rows_bytes = hasher_->columns() * row_format_.row_bytes();
  size_t live = 0;
  for (size_t t = 0; t < tokens; ++t) {
    uint32_t sum = 0;
    const bool is_live = mask.empty() || mask[t] != 0;
    if (is_live) {
      for (const std::byte b :
           packed_rows.subspan(live++ * rows_bytes, rows_bytes)) {
        sum += static_cast<uint32_t>(b);
      }
    }
    for (size_t i = 0; i < token_bytes && !outputs.streams.empty(); ++i) {
      const size_t at = t * token_bytes + i;
      outputs.streams[at] =
          static_cast<std::byte>(static_cast<uint32_t>(streams[at]) + sum);
    }
    for (size_t s = 0; s < config_.hc_mult && !outputs.gate.empty(); ++s) {
      outputs.gate[t * config_.hc_mult + s] = static_cast<float>(sum);
    }
    for (size_t d = 0; d < config_.dim && !outputs.value.empty(); ++d) {
      outputs.value[t * config_.dim + d] = static_cast<uint16_t>(sum);
    }
  }
  if (live * rows_bytes != packed_rows.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        packed_rows.size(), " bytes of rows for ", live, " live tokens"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RowsBuffer> FakeBlock::AllocateRows(size_t size_bytes) const {
  return rows_pool_.Allocate(size_bytes);
}

absl::Status FakeBlock::health() const {
  MutexLock lock(&mutex_);
  return health_;
}

void FakeBlock::SetHealth(absl::Status health) {
  MutexLock lock(&mutex_);
  health_ = std::move(health);
}

void FakeBlock::OnForward(std::function<absl::Status(size_t)> hook) {
  MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

int FakeBlock::forwards() const {
  MutexLock lock(&mutex_);
  return forwards_;
}

// ---- FakeRowSource ----

struct FakeRowSource::Entry {
  LayerId layer;
  std::vector<RowId> row_ids;
  absl::Span<std::byte> out;
  absl::Time deadline;
  absl::AnyInvocable<void(absl::Status)> done;
  bool ended = false;
};

class FakeRowSource::FakeFetch final : public RowFetch {
 public:
  FakeFetch(FakeRowSource* source, std::shared_ptr<Entry> entry)
      : source_(source), entry_(std::move(entry)) {}
  ~FakeFetch() override { Cancel(); }
  void Cancel() override {
    source_->End(entry_, absl::CancelledError("the fetch was cancelled"));
  }

 private:
  FakeRowSource* const source_;
  const std::shared_ptr<Entry> entry_;
};

FakeRowSource::~FakeRowSource() { ENGRAM_CHECK(open() == 0); }

std::byte FakeRowSource::RowByte(LayerId layer, RowId row) {
  return static_cast<std::byte>(row * 31 + ToInt(layer) * 7 + 1);
}

std::unique_ptr<RowFetch> FakeRowSource::Fetch(
    LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
    absl::Time deadline, absl::AnyInvocable<void(absl::Status)> done) {
  ENGRAM_CHECK(out.size() == row_ids.size() * format_.row_bytes());
  auto entry = std::make_shared<Entry>();
  entry->layer = layer;
  entry->row_ids.assign(row_ids.begin(), row_ids.end());
  entry->out = out;
  entry->deadline = deadline;
  entry->done = std::move(done);
  {
    MutexLock lock(&mutex_);
    entries_.push_back(entry);
    changed_.NotifyAll();
  }
  if (mode_ == Mode::kAtOnce) End(entry, absl::OkStatus());
  return std::make_unique<FakeFetch>(this, std::move(entry));
}

void FakeRowSource::End(const std::shared_ptr<Entry>& entry,
                        absl::Status status) {
  absl::AnyInvocable<void(absl::Status)> done;
  {
    MutexLock lock(&mutex_);
    if (entry->ended) return;
    entry->ended = true;
    done = std::move(entry->done);
    if (absl::IsCancelled(status)) ++cancelled_;
    if (status.ok()) {
      for (size_t i = 0; i < entry->row_ids.size(); ++i) {
        const auto row =
            entry->out.subspan(i * format_.row_bytes(), format_.row_bytes());
        std::fill(row.begin(), row.end(),
                  RowByte(entry->layer, entry->row_ids[i]));
      }
    }
  }
  done(std::move(status));
}

void FakeRowSource::AwaitFetches(size_t count) {
  const absl::Time deadline = Soon();
  MutexLock lock(&mutex_);
  while (entries_.size() < count) {
    ENGRAM_CHECK(changed_.WaitUntil(&mutex_, deadline));
  }
}

LayerId FakeRowSource::layer(size_t fetch) const {
  MutexLock lock(&mutex_);
  return entries_.at(fetch)->layer;
}

absl::Time FakeRowSource::deadline(size_t fetch) const {
  MutexLock lock(&mutex_);
  return entries_.at(fetch)->deadline;
}

std::vector<RowId> FakeRowSource::row_ids(size_t fetch) const {
  MutexLock lock(&mutex_);
  return entries_.at(fetch)->row_ids;
}

void FakeRowSource::Complete(size_t fetch, absl::Status status) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(&mutex_);
    entry = entries_.at(fetch);
  }
  End(entry, std::move(status));
}

size_t FakeRowSource::started() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

size_t FakeRowSource::cancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

size_t FakeRowSource::open() const {
  MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [](const auto& entry) { return !entry->ended; }));
}

// ---- StepLog ----

void StepLog::OnResult(StepChunkResult result) {
  result.reserved = {};  // as if the answer had left
  MutexLock lock(&mutex_);
  results_.push_back(std::move(result));
  changed_.NotifyAll();
}

void StepLog::OnEnd(const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    status_ = status;
  }
  ended_.Notify();
}

std::vector<StepChunkResult> StepLog::AwaitResults(size_t count) {
  const absl::Time deadline = Soon();
  MutexLock lock(&mutex_);
  while (results_.size() < count) {
    ENGRAM_CHECK(changed_.WaitUntil(&mutex_, deadline));
  }
  return std::exchange(results_, {});
}

absl::Status StepLog::AwaitEnd() {
  ENGRAM_CHECK(ended_.WaitUntil(Soon()));
  MutexLock lock(&mutex_);
  return status_;
}

// ---- the rest ----

EngineFixture::EngineFixture(FakeRowSource::Mode mode,
                             std::function<void(StepEngine::Options&)> change)
    : rows(block.row_format(), mode) {
  StepEngine::Options options{.version = "v1",
                              .worker_name = "w0",
                              .block = &block,
                              .compute_pool = &pool,
                              .metrics = &metrics,
                              .clock = &clock};
  if (change) change(options);
  engine = std::make_unique<StepEngine>(options);
  engine->SetRowSource(&rows);
}

std::string Streams(const EngramBlock& block, uint64_t tokens,
                    StreamDtype dtype) {
  std::string streams(tokens * TokenStreamBytes(block.config(), dtype), '\0');
  for (size_t i = 0; i < streams.size(); ++i) {
    streams[i] = static_cast<char>(i * 13 + i / 251);
  }
  return streams;
}

v1::Sequence MakeSequence(const std::vector<uint32_t>& tokens,
                          const std::vector<bool>& mask) {
  v1::Sequence sequence;
  sequence.mutable_token_ids()->Add(tokens.begin(), tokens.end());
  for (const bool live : mask) sequence.add_mask(live);
  return sequence;
}

StepSpec MakeSpec(const EngramBlock& block, const std::vector<uint32_t>& tokens,
                  const std::vector<bool>& mask) {
  StepSpec spec;
  *spec.sequences.Add() = MakeSequence(tokens, mask);
  spec.dtype = v1::STREAM_DTYPE_BF16;
  spec.return_kind = v1::RETURN_KIND_STREAMS;
  for (const uint32_t layer : block.config().layer_ids) {
    spec.layers.push_back(LayerId{layer});
  }
  return spec;
}

std::string WantedStreams(const EngramBlock& block, size_t layer_index,
                          const std::vector<uint32_t>& tokens,
                          const std::vector<bool>& mask,
                          const std::string& streams) {
  const size_t columns = block.hasher().columns();
  std::vector<RowId> ids(tokens.size() * columns);
  const std::vector<uint8_t> live(mask.begin(), mask.end());
  block.hasher().Hash(layer_index, {.tokens = tokens, .mask = live},
                      absl::MakeSpan(ids));
  const LayerId layer = block.layout().layers()[layer_index].layer_id;
  const size_t token_bytes = streams.size() / tokens.size();
  std::string wanted = streams;
  for (size_t t = 0; t < tokens.size(); ++t) {
    if (!mask.empty() && !mask[t]) continue;
    uint32_t sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      sum += static_cast<uint32_t>(
                 FakeRowSource::RowByte(layer, ids[t * columns + c])) *
             block.row_format().row_bytes();
    }
    for (size_t i = 0; i < token_bytes; ++i) {
      char& byte = wanted[t * token_bytes + i];
      byte = static_cast<char>(static_cast<uint8_t>(byte) + sum);
    }
  }
  return wanted;
}

}  // namespace engram::test
