#ifndef ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_H_
#define ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/membership/member.h"
#include "table_server/membership/departures.h"

namespace engram {

// Who counts as a member of the cluster, for one server: a pure function of
// what it was told and when.
//
// The wanted members are those that the source names, and those of the view
// that it lacks where that is no departure yet; less those that left for good,
// and those of the view of which nothing was heard for death_delay, until they
// are heard again. When they differ from the view and have stayed the same for
// stability_window, they become the view. Those that left for good leave it at
// once. Failed and empty answers of the source change nothing, and while there
// are no others nobody grows more absent.
//
// The first view also waits until it has expected_servers, or until a peer has
// a view: then the cluster has been formed before. That may have been a moment
// ago, by a server that the source named to the peer first; so the source has
// to be asked once more then.
//
// Not thread-safe. Times are of one clock and never go back.
class MemberTracker {
 public:
  struct Options {
    std::string self;
    uint64_t self_instance_id = 0;
    uint32_t expected_servers = 0;
    absl::Duration stability_window = absl::Seconds(5);
    // Of silence or, where the source's absence_is_departure is false, of
    // absence.
    absl::Duration death_delay = absl::Minutes(5);
    bool absence_is_departure = true;
  };

  explicit MemberTracker(Options options);

  // The source was asked. A good answer is a list of MakeMemberList.
  void Observe(const absl::StatusOr<std::vector<Member>>& answer,
               absl::Time now);
  // A peer answered: this instance of it is there. `has_view`: it has one.
  // Ignored: servers that the source has not named, and instances before the
  // one heard last.
  void HeardFrom(absl::string_view name, uint64_t instance_id, bool has_view,
                 absl::Time now);
  // A server that may not be named yet has a view: the cluster was formed.
  void ClusterIsFormed();
  // What others know about departures. At most kMaxDepartures are kept, the
  // latest.
  void MergeDepartures(absl::Span<const MemberDeparture> departures);
  // This server leaves for good. It is no member of its view from the next
  // Update on.
  void Leave();

  // Moves on to `now`. True: the view has changed.
  bool Update(absl::Time now);

  // The view, by name, at most kMaxMembers; empty: none yet, or everybody left.
  // Addresses are the latest known; a change of address is no change of the
  // view, one of capacity is.
  const std::vector<Member>& view() const { return view_; }
  bool has_view() const { return has_view_; }
  // For logs and people: "2 of 3 expected servers are there: t0, t2"; empty
  // when nothing is waited for.
  std::string waiting_for() const;

  // All servers worth asking, by name: named by the source or of the view,
  // without this one. Also those that were and have been heard in the last
  // death_delay: they still hold rows.
  std::vector<Member> Peers() const;
  // By name.
  std::vector<MemberDeparture> departures() const { return departures_.All(); }

  static constexpr size_t kMaxDepartures = Departures::kMax;

 private:
  struct Server {
    Member member;       // as last named
    bool named = false;  // by the last good answer
    bool in_view = false;
    // Out of the view for its silence, not heard since.
    bool dropped = false;
    uint64_t instance_id = 0;
    absl::Time last_named = absl::InfinitePast();
    absl::Time absent_since = absl::InfinitePast();  // while it is not named
    absl::Time joined = absl::InfinitePast();        // the view
    absl::Time last_heard = absl::InfinitePast();
  };

  uint64_t InstanceOf(absl::string_view name) const;
  bool IsSilent(const Server& server) const;
  bool IsWanted(const Server& server) const;
  std::vector<Member> Wanted() const;
  bool MayFormView() const;
  void RefreshPending();
  void AdoptPending();
  bool DropDeparted();
  void Forget();

  const Options options_;
  absl::Time now_ = absl::InfinitePast();
  absl::btree_map<std::string, Server> servers_;
  Departures departures_;
  absl::Time last_answer_ = absl::InfinitePast();  // a good one
  std::string last_error_;                         // of the source, since then
  bool peer_has_view_ = false;
  int answers_to_wait_ = 0;  // of the source, since then

  std::vector<Member> view_;
  bool has_view_ = false;
  // What is wanted instead of the view, and since when.
  std::optional<std::vector<Member>> pending_;
  absl::Time pending_since_ = absl::InfinitePast();
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_MEMBERSHIP_MEMBER_TRACKER_H_
