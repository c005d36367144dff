#ifndef ENGRAM_ENGRAM_CLIENT_RPC_TABLE_IDENTITY_H_
#define ENGRAM_ENGRAM_CLIENT_RPC_TABLE_IDENTITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "engram/v1/table.pb.h"
#include "engram_client/routing/routing_snapshot.h"
#include "engram_client/table_client.h"

namespace engram {

// What a server says of its table, checked. INVALID_ARGUMENT names the field
// that does not hold together.
absl::StatusOr<TableInfo> ParseTableInfo(const v1::GetTableResponse& response);

// Which servers may be used together: all of one table version, no two of one
// name. The first server that is admitted says which table it is, for the life
// of the client.
//
// Thread safety: all methods may be called concurrently.
class TableIdentity {
 public:
  // Servers that are there from the start have the first slots.
  TableIdentity(std::vector<std::string> addresses,
                std::string expected_version);

  void Add(ServerIndex server, std::string address);
  void Remove(ServerIndex server);
  // The cluster does not name the server any more: another may have its name,
  // for this one has moved or is about to go.
  void SetLeaving(ServerIndex server, bool leaving);

  // Admits the server that answered at `server`'s address. WRONG_TABLE: not
  // the expected version; it may come back with it. FAILED_PRECONDITION:
  // another version than the servers before, or the name of a server that is
  // reached elsewhere and not leaving (the message names both).
  // INVALID_ARGUMENT: as ParseTableInfo.
  absl::Status Admit(ServerIndex server, const v1::GetTableResponse& response);
  // The server was lost: its name may come back from elsewhere.
  void Release(ServerIndex server);

  // A later start of the same server is admitted elsewhere, and not leaving.
  bool HasSuccessor(ServerIndex server) const;

  // Null until the first server is admitted, then always the same.
  const TableInfo* table() const;
  // Why no servers can be used: the first refusal for anything but the
  // expected version, or WRONG_TABLE once every server that there is was
  // refused for that and none was ever admitted. Else OK.
  absl::Status conflict() const;

 private:
  struct Admitted {
    std::string name;  // empty: not admitted
    uint64_t instance_id = 0;
    absl::Status wrong_table;  // what it was refused for, if for that
  };
  struct Member {
    std::string address;  // empty: nobody
    bool leaving = false;
    Admitted as;
  };
  absl::Status AdmitLocked(ServerIndex server,
                           const v1::GetTableResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckName(ServerIndex server,
                         const v1::GetTableResponse& response) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string expected_version_;
  mutable Mutex mutex_;
  std::unique_ptr<const TableInfo> table_ ABSL_GUARDED_BY(mutex_);
  std::string first_server_ ABSL_GUARDED_BY(mutex_);  // who said so, for errors
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  absl::Status conflict_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace engram

#endif  // ENGRAM_ENGRAM_CLIENT_RPC_TABLE_IDENTITY_H_
