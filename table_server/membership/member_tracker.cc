#include "table_server/membership/member_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

// Named, of the view, or gone and remembered for a while.
constexpr size_t kMaxServers = 3 * kMaxMembers;

// The first answer may have been under way.
constexpr int kAnswersToWait = 2;

// Addresses do not matter.
bool SameMembers(const std::vector<Member>& a, const std::vector<Member>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Member& x, const Member& y) {
                      return x.name == y.name && x.capacity == y.capacity;
                    });
}

}  // namespace

MemberTracker::MemberTracker(Options options) : options_(std::move(options)) {}

void MemberTracker::Observe(const absl::StatusOr<std::vector<Member>>& answer,
                            absl::Time now) {
  now_ = now;
  if (!answer.ok() || answer->empty()) {
    last_error_ =
        answer.ok() ? "it names no server" : answer.status().ToString();
    return;
  }
  last_answer_ = now;
  if (answers_to_wait_ > 0) --answers_to_wait_;
  last_error_.clear();
  for (auto& [name, server] : servers_) {
    if (std::exchange(server.named, false)) server.absent_since = now;
  }
  for (const Member& member : *answer) {
    Server& server = servers_[member.name];
    server.member = member;
    server.named = true;
    server.last_named = now;
  }
  for (Member& member : view_) {
    member.address = servers_[member.name].member.address;
  }
  RefreshPending();
}

void MemberTracker::HeardFrom(absl::string_view name, uint64_t instance_id,
                              bool has_view, absl::Time now) {
  now_ = now;
  const auto it = servers_.find(name);
  if (name == options_.self || it == servers_.end()) return;
  Server& server = it->second;
  if (instance_id < server.instance_id) return;
  server.instance_id = instance_id;
  server.last_heard = now;
  server.dropped = false;
  departures_.Returned(name, instance_id);
  if (has_view) ClusterIsFormed();
}

void MemberTracker::ClusterIsFormed() {
  if (std::exchange(peer_has_view_, true)) return;
  answers_to_wait_ = kAnswersToWait;
}

void MemberTracker::MergeDepartures(
    absl::Span<const MemberDeparture> departures) {
  for (const MemberDeparture& departure : departures) {
    if (departure.instance_id < InstanceOf(departure.name)) continue;
    departures_.Add(departure);
  }
  departures_.Trim();
}

void MemberTracker::Leave() {
  departures_.Add({options_.self, options_.self_instance_id});
}

bool MemberTracker::Update(absl::Time now) {
  now_ = now;
  Forget();
  bool changed = DropDeparted();
  RefreshPending();
  if (pending_.has_value() && MayFormView() &&
      pending_->size() <= kMaxMembers &&
      now - pending_since_ >= options_.stability_window) {
    AdoptPending();
    changed = true;
  }
  return changed;
}

std::string MemberTracker::waiting_for() const {
  if (last_answer_ == absl::InfinitePast()) {
    return absl::StrCat("the member source has named no servers yet",
                        last_error_.empty() ? "" : ": ", last_error_);
  }
  if (!pending_.has_value()) return "";
  const std::string names = NamesOf(*pending_);
  if (!MayFormView()) {
    return absl::StrCat(pending_->size(), " of ", options_.expected_servers,
                        " expected servers are there: ", names);
  }
  if (pending_->size() > kMaxMembers) {
    return absl::StrCat(pending_->size(), " servers are there, the limit is ",
                        kMaxMembers, ": ", names);
  }
  return absl::StrCat("servers that stay the same for ",
                      absl::FormatDuration(options_.stability_window), ": ",
                      names);
}

std::vector<Member> MemberTracker::Peers() const {
  std::vector<Member> peers;
  for (const auto& [name, server] : servers_) {
    const bool worth_asking = server.named || server.in_view ||
                              server.last_heard > absl::InfinitePast();
    if (worth_asking && name != options_.self) peers.push_back(server.member);
  }
  return peers;
}

uint64_t MemberTracker::InstanceOf(absl::string_view name) const {
  if (name == options_.self) return options_.self_instance_id;
  const auto it = servers_.find(name);
  return it == servers_.end() ? 0 : it->second.instance_id;
}

bool MemberTracker::IsSilent(const Server& server) const {
  return server.member.name != options_.self &&
         now_ - std::max(server.last_heard, server.joined) >=
             options_.death_delay;
}

bool MemberTracker::IsWanted(const Server& server) const {
  const std::string& name = server.member.name;
  if (server.dropped || departures_.HasLeft(name, InstanceOf(name)) ||
      (server.in_view && IsSilent(server))) {
    return false;
  }
  // Absence counts up to the last good answer, which confirmed it.
  return server.named ||
         (server.in_view && !options_.absence_is_departure &&
          last_answer_ - server.absent_since < options_.death_delay);
}

std::vector<Member> MemberTracker::Wanted() const {
  std::vector<Member> wanted;
  for (const auto& [name, server] : servers_) {
    if (IsWanted(server)) wanted.push_back(server.member);
  }
  return wanted;
}

bool MemberTracker::MayFormView() const {
  return has_view_ || (peer_has_view_ && answers_to_wait_ == 0) ||
         (pending_.has_value() &&
          pending_->size() >= options_.expected_servers);
}

void MemberTracker::RefreshPending() {
  if (last_answer_ == absl::InfinitePast()) return;
  std::vector<Member> wanted = Wanted();
  if (has_view_ && SameMembers(wanted, view_)) {
    pending_.reset();
    return;
  }
  if (!pending_.has_value() || !SameMembers(wanted, *pending_)) {
    pending_since_ = now_;
  }
  pending_ = std::move(wanted);
}

void MemberTracker::AdoptPending() {
  for (auto& [name, server] : servers_) {
    const bool joins = IsWanted(server);
    if (joins && !server.in_view) server.joined = now_;
    if (!joins && server.in_view) server.dropped = IsSilent(server);
    server.in_view = joins;
  }
  view_ = *std::move(pending_);
  pending_.reset();
  has_view_ = true;
}

bool MemberTracker::DropDeparted() {
  const size_t dropped = std::erase_if(view_, [&](const Member& member) {
    const std::string& name = member.name;
    if (!departures_.HasLeft(name, InstanceOf(name))) return false;
    servers_[name].in_view = false;
    return true;
  });
  return dropped > 0;
}

void MemberTracker::Forget() {
  const auto is_gone = [](const Server& server) {
    return !server.named && !server.in_view;
  };
  const auto last_seen = [](const Server& server) {
    return std::max(server.last_heard, server.last_named);
  };
  std::vector<std::pair<absl::Time, std::string>> remembered;
  for (auto it = servers_.begin(); it != servers_.end();) {
    const Server& server = it->second;
    if (is_gone(server) && now_ - last_seen(server) >= options_.death_delay) {
      it = servers_.erase(it);
      continue;
    }
    if (is_gone(server)) remembered.emplace_back(last_seen(server), it->first);
    ++it;
  }
  if (servers_.size() <= kMaxServers) return;
  std::sort(remembered.begin(), remembered.end());
  remembered.resize(std::min(remembered.size(), servers_.size() - kMaxServers));
  for (const auto& [time, name] : remembered) servers_.erase(name);
}

}  // namespace engram
