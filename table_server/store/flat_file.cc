#include "table_server/store/flat_file.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/base/thread_scratch.h"
#include "table_server/store/aligned_buffer.h"

namespace engram {
namespace {

// Of a file at once: a huge page, which the thread finds again. Disks reach
// their full rate when several threads load.
constexpr size_t kPieceBytes = size_t{2} << 20;

size_t PagesAtOnce(const FlatHeader& header) {
  const size_t fit = std::max<size_t>(1, kPieceBytes / header.page_bytes());
  return std::min<size_t>(fit, header.page_count());
}

// The pages of a file, some at once: fn(first page, their bytes, their rows as
// they lie packed).
template <typename Packed, typename Fn>
absl::Status ForPieces(const FlatHeader& header, absl::Span<Packed> packed,
                       const Fn& fn) {
  ENGRAM_CHECK(packed.size() == header.rows * header.row_bytes);
  const size_t at_once = PagesAtOnce(header);
  ENGRAM_ASSIGN_OR_RETURN(ThreadScratch buffer,
                          ThreadScratch::Take(at_once * header.page_bytes()));
  for (uint64_t page = 0; page < header.page_count(); page += at_once) {
    const size_t pages = std::min<size_t>(at_once, header.page_count() - page);
    const size_t rows =
        std::min<size_t>(pages * header.rows_per_page(),
                         header.rows - page * header.rows_per_page());
    ENGRAM_RETURN_IF_ERROR(
        fn(static_cast<uint32_t>(page),
           buffer.bytes().subspan(0, pages * header.page_bytes()),
           packed.subspan(0, rows * header.row_bytes)));
    packed.remove_prefix(rows * header.row_bytes);
  }
  return absl::OkStatus();
}

void FillPages(const FlatHeader& header, const FlatSeal& seal,
               uint32_t first_page, absl::Span<std::byte> pages,
               absl::Span<const std::byte> rows) {
  for (uint32_t number = first_page; !pages.empty(); ++number) {
    const absl::Span<std::byte> page = pages.subspan(0, header.page_bytes());
    const size_t used = header.RowsIn(number) * header.row_bytes;
    std::memcpy(page.data(), rows.data(), used);
    std::memset(page.data() + used, 0, page.size() - used);
    seal.Close(number, page);
    pages.remove_prefix(page.size());
    rows.remove_prefix(used);
  }
}

absl::Status TakeRows(const FlatHeader& header, const FlatSeal& seal,
                      uint32_t first_page, absl::Span<const std::byte> pages,
                      absl::Span<std::byte> rows) {
  for (uint32_t number = first_page; !pages.empty(); ++number) {
    const auto page = pages.subspan(0, header.page_bytes());
    ENGRAM_RETURN_IF_ERROR(seal.Check(number, page));
    const size_t used = header.RowsIn(number) * header.row_bytes;
    std::memcpy(rows.data(), page.data(), used);
    pages.remove_prefix(page.size());
    rows.remove_prefix(used);
  }
  return absl::OkStatus();
}

absl::Status CheckHeader(const FlatHeader& found, const FlatHeader& wanted) {
  if (found == wanted) return absl::OkStatus();
  const auto text = [](const FlatHeader& header) {
    return absl::StrCat("partition ", ToInt(header.ref.partition), " of layer ",
                        ToInt(header.ref.layer), " of table ", header.version,
                        ", ", header.rows, " rows of ", header.row_bytes,
                        " bytes");
  };
  return absl::DataLossError(
      absl::StrCat("the file is of ", text(found), ", not of ", text(wanted)));
}

}  // namespace

absl::Status WriteFlatFile(StoreFiles& files, const std::string& path,
                           const FlatHeader& header,
                           absl::Span<const std::byte> packed) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFile> file,
                          files.Create(path, header.file_bytes()));
  const FlatSeal seal(header.version, header.ref);
  ENGRAM_RETURN_IF_ERROR(ForPieces(
      header, packed,
      [&](uint32_t first_page, absl::Span<std::byte> pages,
          absl::Span<const std::byte> rows) {
        FillPages(header, seal, first_page, pages, rows);
        return WriteFully(*file, path, header.OffsetOf(first_page), pages);
      }));
  // Last: a file that was written in part has none.
  AlignedBuffer page(kFlatHeaderBytes);
  WriteFlatHeader(header, page.bytes());
  ENGRAM_RETURN_IF_ERROR(WriteFully(*file, path, 0, page.bytes()));
  return file->Sync();
}

absl::Status CheckFlatFile(StoreFiles& files, const std::string& path,
                           const FlatHeader& wanted) {
  ENGRAM_ASSIGN_OR_RETURN(const std::unique_ptr<StoreFile> file,
                          files.Open(path));
  ENGRAM_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->SizeBytes());
  if (size_bytes != wanted.file_bytes()) {
    return absl::DataLossError(absl::StrCat(
        path, " has ", size_bytes, " bytes, not ", wanted.file_bytes()));
  }
  AlignedBuffer page(kFlatHeaderBytes);
  ENGRAM_RETURN_IF_ERROR(ReadFully(*file, path, 0, page.bytes()));
  const auto found = ParseFlatHeader(page.bytes());
  if (!found.ok()) return Annotate(found.status(), path);
  return Annotate(CheckHeader(*found, wanted), path);
}

absl::Status ReadFlatFile(
    const StoreFile& file, const std::string& path, const FlatHeader& header,
    absl::Span<std::byte> out,
    absl::FunctionRef<absl::Status(size_t bytes)> on_bytes) {
  const FlatSeal seal(header.version, header.ref);
  return ForPieces(
      header, out,
      [&](uint32_t first_page, absl::Span<std::byte> pages,
          absl::Span<std::byte> rows) -> absl::Status {
        ENGRAM_RETURN_IF_ERROR(
            ReadFully(file, path, header.OffsetOf(first_page), pages));
        ENGRAM_RETURN_IF_ERROR(
            Annotate(TakeRows(header, seal, first_page, pages, rows), path));
        return on_bytes(rows.size());
      });
}

absl::Status ReadFlatPage(const StoreFile& file, const std::string& path,
                          const FlatHeader& header, const FlatSeal& seal,
                          uint32_t number, absl::Span<std::byte> page) {
  ENGRAM_RETURN_IF_ERROR(ReadFully(file, path, header.OffsetOf(number), page));
  return Annotate(seal.Check(number, page), path);
}

}  // namespace engram
