#ifndef ENGRAM_TABLE_SERVER_LOADING_HTTP_TABLE_H_
#define ENGRAM_TABLE_SERVER_LOADING_HTTP_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/http/http_reader.h"
#include "core/http/http_url.h"
#include "core/model/manifest.h"

namespace engram {

// A tensor of a safetensors file on a server.
struct HttpTensor {
  HttpRange range;   // all of it
  std::string etag;  // of the file as its header was read; may be empty
};

// Where the two columns of a layer's rows lie.
struct HttpLayer {
  HttpTensor codes;
  HttpTensor scales;
};

// Reads config.json, the index (or, without one, takes model.safetensors) and
// the headers of the files that hold the tables; no data. The result has the
// manifest's layers.
//
// NOT_FOUND: a file or a tensor is missing. INVALID_ARGUMENT: a file is not
// what the format wants, or a tensor stands in two of the files or in another
// than the index says. FAILED_PRECONDITION: the manifest is of another
// checkpoint. Else the errors of HttpReader, and of `wait`, which it is given.
// Messages name URL and tensor.
absl::StatusOr<std::vector<HttpLayer>> FindHttpLayers(HttpReader& reader,
                                                      const HttpFolder& folder,
                                                      const Manifest& manifest,
                                                      HttpReader::Waiter wait);

// `folder`'s engram_manifest.json, as Manifest::Load reads one.
absl::StatusOr<Manifest> FetchManifest(HttpReader& reader,
                                       const HttpFolder& folder,
                                       HttpReader::Waiter wait);

// A checkpoint's tables on a server: all that reading them takes.
struct HttpTable {
  std::string url;
  std::unique_ptr<HttpReader> reader;
  std::vector<HttpLayer> layers;  // by the manifest's
};

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_HTTP_TABLE_H_
