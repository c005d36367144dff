// Runs a fuzz target without libFuzzer: every seed of a corpus, then a fixed
// number of mutations of them, the same in every run.
//
//   NAME_fuzz CORPUS_DIR MUTATIONS

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Input = std::string;
using Random = std::mt19937_64;

std::vector<Input> ReadCorpus(const char* dir) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  return inputs;
}

// A place in `input` that may also be its end.
size_t Place(Random& random, const Input& input) {
  return random() % (input.size() + 1);
}

// What breaks parsers: ends of number ranges, brackets, quotes, zero bytes.
const Input& Token(Random& random) {
  static const std::vector<Input> tokens = {"0",
                                            "-1",
                                            "1e999",
                                            "18446744073709551615",
                                            "18446744073709551616",
                                            "9223372036854775808",
                                            "4294967296",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            "[[[[[[[[",
                                            "\"",
                                            "\\u0000",
                                            ",",
                                            ":",
                                            "null",
                                            "true",
                                            "\xff",
                                            Input(1, '\0'),
                                            Input(8, '\xff'),
                                            "../",
                                            "1.5"};
  return tokens[random() % tokens.size()];
}

void MutateOnce(Random& random, const std::vector<Input>& corpus,
                Input& input) {
  constexpr size_t kLongestCut = 16;
  const size_t at = Place(random, input);
  const size_t length = 1 + random() % kLongestCut;
  switch (random() % 7) {
    case 0:  // one bit
      if (at < input.size()) input[at] ^= static_cast<char>(1 << random() % 8);
      break;
    case 1:  // any byte
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, input.substr(Place(random, input), length));
      break;
    case 4:
      input.insert(at, Token(random));
      break;
    case 5:
      input.replace(at, length, Token(random));
      break;
    default: {  // the front of this one, the back of another
      const Input& other = corpus[random() % corpus.size()];
      input = input.substr(0, at) + other.substr(Place(random, other));
    }
  }
}

void Run(const Input& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t mutations = 0;
  ENGRAM_CHECK(argc == 3 && absl::SimpleAtoi(argv[2], &mutations));
  const std::vector<Input> corpus = ReadCorpus(argv[1]);
  ENGRAM_CHECK(!corpus.empty());
  for (const Input& seed : corpus) Run(seed);
  for (uint64_t i = 0; i < mutations; ++i) {
    Random random(i);
    Input input = corpus[i % corpus.size()];
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      MutateOnce(random, corpus, input);
    }
    Run(input);
  }
  std::printf("%zu seeds, %zu mutations\n", corpus.size(),
              static_cast<size_t>(mutations));
  return 0;
}
