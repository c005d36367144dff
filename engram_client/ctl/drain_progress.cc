#include "engram_client/ctl/drain_progress.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engram_client/ctl/format.h"

namespace engram::ctl {
namespace {

uint64_t CountHeld(const v1::ExchangeResponse& response) {
  uint64_t held = 0;
  for (const v1::LayerPartitions& layer : response.held()) {
    for (const char byte : layer.bitmap()) {
      held += std::popcount(static_cast<uint8_t>(byte));
    }
  }
  return held;
}

}  // namespace

DrainProgress::DrainProgress(std::string server_name, uint64_t instance_id,
                             absl::Time now)
    : server_name_(std::move(server_name)),
      instance_id_(instance_id),
      answered_at_(now) {}

DrainProgress::State DrainProgress::Answered(
    const v1::ExchangeResponse& response, absl::Time now) {
  answered_at_ = now;
  silence_.clear();
  if (response.instance_id() != instance_id_) return State::kRestarted;
  held_ = CountHeld(response);
  // What was loaded on the way is to be handed over too.
  held_first_ = std::max(held_first_, held_);
  known_ = true;
  lingering_ = response.moves().lingering();
  waiting_for_ = Printable(response.moves().waiting_for());
  handed_over_.Add(now, held_first_ - held_);
  const bool empty =
      held_ == 0 && lingering_ == 0 && response.moves().to_free() == 0;
  return response.leaving() && empty ? State::kDone : State::kUnderWay;
}

DrainProgress::State DrainProgress::Silent(const absl::Status& why,
                                           absl::Time now) {
  silence_ = Printable(why.message());
  return now - answered_at_ >= kMaxSilence ? State::kLost : State::kUnderWay;
}

std::string DrainProgress::text(absl::Time now) const {
  std::string text = absl::StrCat(server_name_, ": ");
  if (!silence_.empty()) {
    absl::StrAppend(&text, "no answer for ", ShortDuration(now - answered_at_),
                    ": ", silence_);
    return text;
  }
  if (!known_) return text + "told to leave";
  if (held_ == 0) {
    absl::StrAppend(&text, "all ", WithCommas(held_first_),
                    " partitions handed over");
    if (lingering_ > 0) {
      absl::StrAppend(&text, ", still answers for ", WithCommas(lingering_));
    }
  } else {
    absl::StrAppend(&text, WithCommas(held_), " of ", WithCommas(held_first_),
                    " partitions still to hand over");
    const std::optional<double> rate = handed_over_.per_second();
    const std::optional<absl::Duration> left = handed_over_.TimeFor(held_);
    if (rate.has_value() && left.has_value()) {
      absl::StrAppend(&text, ", ", absl::StrFormat("%.0f", *rate), "/s, ",
                      ShortDuration(*left), " left");
    }
  }
  if (!waiting_for_.empty()) {
    absl::StrAppend(&text, "; it waits for: ", waiting_for_);
  }
  return text;
}

}  // namespace engram::ctl
