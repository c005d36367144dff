#ifndef ENGRAM_TABLE_SERVER_STORE_LOCAL_STORE_H_
#define ENGRAM_TABLE_SERVER_STORE_LOCAL_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/ids.h"
#include "table_server/store/store_stats.h"
#include "table_server/tier/row_fetch.h"

namespace engram {

// Verified partitions of one table version on a local disk: a copy that
// outlives the process, and the rows of partitions for which there is no
// memory.
//
// What it gives is as it was put, or an error: each block of rows has a
// checksum that also says which block of which partition it is. A partition
// that a read finds damaged or gone (DATA_LOSS) is dropped, once: it is not
// there from then on, nor when the store is opened again. So is one of which
// the disk itself fails three reads (EIO), each 10 s after the one before,
// since it was put or the store was opened: the third is DATA_LOSS, those
// before are UNAVAILABLE. Reads that fail for other reasons (UNAVAILABLE: no
// memory, too many open files) change nothing.
//
// A store that was opened to be read only changes nothing on the disk: what
// somebody left half written or damaged stays, and so does what a read finds
// damaged. Partitions() has the damaged ones too, however badly they are, and
// Read says what is wrong. Put and Remove are FAILED_PRECONDITION. Others may
// read the same directory at that time, and nobody may write to it.
//
// Thread safety: all methods may be called concurrently; Put, Remove and Read
// of one partition by one thread at a time. REQUIRES, for Remove, and for Put
// of one that is there: nobody fetches rows of it.
class LocalStore {
 public:
  // Told once, on a thread of the store: never inside the call of Fetch, but
  // maybe before that has returned. Must not block.
  using OnRows = absl::AnyInvocable<void(absl::Status)>;

  // Waits for the fetches that are out.
  virtual ~LocalStore() = default;

  virtual std::string description() const = 0;  // for messages: kind and path
  // For messages: the file of a partition that is there, as far as that is
  // known.
  virtual std::string PlaceOf(const PartitionRef& /*ref*/) const {
    return description();
  }

  // Complete, ascending.
  virtual std::vector<PartitionRef> Partitions() const = 0;
  virtual bool Has(const PartitionRef& ref) const = 0;

  // OK: it is there and complete, and stays so whenever the process or the
  // machine ends from now on. Otherwise, and if the end comes before, it is
  // not there, or what was put before under this name is.
  // RESOURCE_EXHAUSTED: the disk is full, or the store would have more than
  // its limit; ABORTED: a read drops the one before at this moment; others:
  // what the system says, with the path.
  // REQUIRES: packed.size() is the partition's.
  virtual absl::Status Put(const PartitionRef& ref,
                           absl::Span<const std::byte> packed) = 0;
  // What it took on the disk is free then, or as soon as what the store does in
  // the background has ended. Of a partition that is not there: OK. ABORTED as
  // Put.
  virtual absl::Status Remove(const PartitionRef& ref) = 0;

  // The whole partition; `on_bytes` and errors as PartitionSource::Read.
  // Blocks. NOT_FOUND; DATA_LOSS, naming the file and the place: a block is not
  // what was put, or the file is gone or unreadable for good.
  virtual absl::Status Read(
      const PartitionRef& ref, absl::Span<std::byte> out,
      absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) = 0;

  // Rows, all read in parallel as far as the store's threads go; blocks that
  // several of them are in are read once. Blocks on nothing. `done` is told OK
  // once all of them are in their slots; else DATA_LOSS or NOT_FOUND
  // (DamagedPartitionOf says of which partition; of a row beyond the table of
  // none), UNAVAILABLE (the disk; with path and error), DEADLINE_EXCEEDED (what
  // was not begun by then is not read at all) or RESOURCE_EXHAUSTED (more reads
  // are queued than may be), and what is in the slots is unspecified. The
  // memory that `fetch` refers to stays until then.
  virtual void Fetch(RowFetch fetch, OnRows done) = 0;

  virtual uint64_t disk_bytes() const = 0;  // that it takes
  // At most, that a partition of the manifest takes once it is put. Other
  // versions count towards the store's limit too: StoreStats.
  virtual uint64_t DiskBytesOf(const PartitionRef& ref) const = 0;
  // At most, that the store keeps in memory while these are there.
  virtual uint64_t MemoryBytesOf(
      absl::Span<const PartitionRef> /*refs*/) const {
    return 0;
  }
  virtual StoreStats stats() const = 0;
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_STORE_LOCAL_STORE_H_
