#include "tests/gpu/emulator/copies.h"

#include <cuda_runtime.h>

#include <cstring>
#include <deque>
#include <vector>

#include "tests/gpu/emulator/collective.h"

namespace engram::emulator {
namespace {

struct Copy {
  void* to;
  const void* from;
  size_t size_bytes;
};

struct ThreadCopies {
  std::vector<Copy> open;  // of the group that is not closed yet
  std::deque<std::vector<Copy>> groups;
};

ThreadCopies& CopiesOf(size_t number) {
  static auto* const copies = new std::vector<ThreadCopies>(1024);
  return copies->at(number);
}

ThreadCopies& MyCopies() {
  return CopiesOf(threadIdx.y * blockDim.x + threadIdx.x);
}

}  // namespace

void StartCopy(void* to, const void* from, size_t size_bytes) {
  CheckAligned(to, size_bytes);
  CheckAligned(from, size_bytes);
  MyCopies().open.push_back({to, from, size_bytes});
}

void CommitCopies() {
  ThreadCopies& mine = MyCopies();
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

void WaitCopies(size_t under_way) {
  ThreadCopies& mine = MyCopies();
  while (mine.groups.size() > under_way) {
    for (const Copy& copy : mine.groups.front()) {
      std::memcpy(copy.to, copy.from, copy.size_bytes);
    }
    mine.groups.pop_front();
  }
}

bool NoCopiesUnderWay(size_t number) {
  const ThreadCopies& copies = CopiesOf(number);
  return copies.open.empty() && copies.groups.empty();
}

}  // namespace engram::emulator
