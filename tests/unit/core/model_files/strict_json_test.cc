#include "core/model/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using test::IsError;
using test::IsOk;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(StrictJsonTest, ParsesEveryKindOfValue) {
  const std::string text =
      R"({"a":[1,-2,3.5,true,null,"x",{"b":[]},[[]]],"c":{"a":{"a":1}}})";
  const auto value = ParseStrictJson(text);
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(*value, nlohmann::json::parse(text));
}

TEST(StrictJsonTest, DuplicateKeysAreNamed) {
  EXPECT_THAT(ParseStrictJson(R"({"a":1,"b":2,"a":3})"),
              IsError(kInvalid, HasSubstr("'a' stands twice")));
  EXPECT_THAT(ParseStrictJson(R"({"x":[{"a":1},{"b":2,"b":{}}]})"),
              IsError(kInvalid, HasSubstr("'b' stands twice")));
  // The same key in two objects is no duplicate.
  EXPECT_THAT(ParseStrictJson(R"([{"a":1},{"a":1}])"), IsOk());
}

TEST(StrictJsonTest, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_THAT(ParseStrictJson(nested(kMaxJsonDepth)), IsOk());
  EXPECT_THAT(ParseStrictJson(nested(kMaxJsonDepth + 1)),
              IsError(kInvalid, HasSubstr("deeper than 32")));
  EXPECT_THAT(ParseStrictJson(std::string(10'000'000, '[')),
              IsError(kInvalid, HasSubstr("deeper than 32")));
}

TEST(StrictJsonTest, SyntaxErrorsAreShort) {
  for (const char* text :
       {"", "{", "{}x", "nul", "[1,]", "\"\xff\"", "1e999"}) {
    EXPECT_THAT(ParseStrictJson(text), IsError(kInvalid, HasSubstr("not JSON")))
        << text;
  }
  EXPECT_THAT(ParseStrictJson(absl::string_view("{}\0", 3)),
              IsError(kInvalid, HasSubstr("a zero byte at 2")));
  const auto long_token = ParseStrictJson("\"" + std::string(1 << 20, 'x'));
  EXPECT_LT(long_token.status().message().size(), 1000U);
}

TEST(StrictJsonTest, TypedMembersNameKeyValueAndLimit) {
  const auto object = ParseStrictJson(R"({"n":7,"neg":-1,"f":1.5,"s":"x"})");
  ASSERT_THAT(object, IsOk());
  EXPECT_EQ(*JsonUint(*object, "n", 7), 7U);
  EXPECT_EQ(*JsonString(*object, "s"), "x");
  EXPECT_THAT(JsonUint(*object, "n", 6),
              IsError(kInvalid, HasSubstr("'n' is 7, the limit is 6")));
  EXPECT_THAT(JsonUint(*object, "neg", 6),
              IsError(kInvalid, HasSubstr("'neg' is -1, not a whole number")));
  EXPECT_THAT(JsonUint(*object, "f", 6),
              IsError(kInvalid, HasSubstr("'f' is 1.5")));
  EXPECT_THAT(JsonUint(*object, "s", 6),
              IsError(kInvalid, HasSubstr("'s' is string")));
  EXPECT_THAT(JsonUint(*object, "gone", 6),
              IsError(kInvalid, HasSubstr("'gone' is missing")));
  EXPECT_THAT(JsonString(*object, "n"),
              IsError(kInvalid, HasSubstr("'n' is a number, not a string")));
}

TEST(StrictJsonTest, QuotedIsFitForAMessage) {
  EXPECT_EQ(Quoted("a\nb"), "'a\\nb'");
  EXPECT_EQ(Quoted(std::string(200, 'x')),
            "'" + std::string(120, 'x') + "...'");
}

}  // namespace
}  // namespace engram
