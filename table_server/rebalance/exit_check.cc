#include "table_server/rebalance/exit_check.h"

#include <algorithm>
#include <utility>

namespace engram {

ExitCheck::ExitCheck(const Manifest& manifest, const KnownPeers& peers,
                     Options options)
    : manifest_(manifest), peers_(peers), options_(std::move(options)) {}

ExitCheck::Finding ExitCheck::Look(absl::Span<const PartitionRef> held,
                                   const ClusterView& view,
                                   absl::Time now) const {
  const std::vector<PartitionRef> only_here =
      peers_.OnlyHere(held, view, Since(now, options_.silent_after));
  Finding finding{.only_here = only_here.size()};
  if (only_here.empty()) return finding;
  finding.possible_takers = PossibleTakers(now);
  if (finding.possible_takers == 0) {
    finding.advice = Advice::kNobodyElse;
    return finding;
  }
  const bool all_have_takers = std::all_of(
      only_here.begin(), only_here.end(),
      [&](const PartitionRef& ref) { return HasTaker(ref, view, now); });
  finding.advice = all_have_takers ? Advice::kWait : Advice::kLeave;
  return finding;
}

size_t ExitCheck::PossibleTakers(absl::Time now) const {
  const KnownPeers::Outlooks outlooks =
      peers_.CountOutlooks(Since(now, options_.give_up_after));
  const bool early = IsEarly(now, options_.give_up_after);
  return outlooks.stay + (early ? outlooks.silent : 0);
}

bool ExitCheck::HasTaker(const PartitionRef& ref, const ClusterView& view,
                         absl::Time now) const {
  const absl::Time since = Since(now, options_.patience);
  const bool early = IsEarly(now, options_.patience);
  const absl::Span<const uint32_t> owners =
      view.Owners(*manifest_.IndexOf(ref.layer), ref.partition);
  return std::any_of(owners.begin(), owners.end(), [&](uint32_t owner) {
    const std::string& name = view.members()[owner].name;
    if (name == options_.self) return false;
    const KnownPeers::Outlook outlook = peers_.OutlookOf(name, since);
    return outlook == KnownPeers::Outlook::kStays ||
           (early && outlook == KnownPeers::Outlook::kSilent);
  });
}

}  // namespace engram
