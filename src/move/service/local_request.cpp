// SPDX-License-Identifier: Apache-2.0
#include "move/service/local_request.hpp"

#include <nlohmann/json.hpp>

namespace wherry::move {
namespace {

using Json = nlohmann::json;
using Op = LocalRequest::Op;

/// Reads the keys of an object. error() names the first wrong key.
class Keys {
 public:
  explicit Keys(const Json& json) : json_(json) {}

  void text(const char* key, std::string& value) {
    const auto it = json_.find(key);
    if (it == json_.end())
      fail(key, "is missing");
    else if (!it->is_string())
      fail(key, "must be a string");
    else
      value = it->get<std::string>();
  }
  void number(const char* key, std::uint64_t& value, bool required) {
    const auto it = json_.find(key);
    if (it == json_.end()) {
      if (required) fail(key, "is missing");
    } else if (!it->is_number_unsigned()) {
      fail(key, "must be a number from 0 on, without a fraction");
    } else {
      value = it->get<std::uint64_t>();
    }
  }
  void fail(const char* key, const char* what) {
    if (status_.ok()) status_ = {StatusCode::kInvalidArgument, std::string("request: \"") + key + "\" " + what};
  }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  const Json& json_;
  Status status_;
};

}  // namespace

Result<LocalRequest> parse_request(std::string_view line) {
  if (line.size() > kMaxLocalLine) return Status(StatusCode::kInvalidArgument, "request: longer than 64 KiB");
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(StatusCode::kInvalidArgument, "request: a line must be one JSON object");
  Keys keys(json);
  LocalRequest request;
  if (!json.contains("op")) {
    if (!json.contains("token")) {
      return Status(StatusCode::kInvalidArgument, R"(request: neither "op" nor, in the first one, "token")");
    }
    request.op = Op::kHello;
    keys.text("token", request.token);
    keys.number("version", request.version, true);
  } else {
    std::string op;
    keys.text("op", op);
    if (op == "next") {
      request.op = Op::kNext;
      keys.text("stream", request.stream);
      keys.number("sequence", request.sequence, false);
      keys.number("generation", request.generation, false);
      if (json.contains("part")) keys.number("part", request.part.emplace(), true);
      std::uint64_t timeout = 0;
      keys.number("timeout_ms", timeout, false);
      if (timeout > static_cast<std::uint64_t>(kMaxLocalWait.count()))
        keys.fail("timeout_ms", "must be at most a day");
      else
        request.timeout = std::chrono::milliseconds(timeout);
    } else if (op == "release") {
      request.op = Op::kRelease;
      keys.number("lease", request.lease, true);
    } else if (op == "list") {
      request.op = Op::kList;
      if (json.contains("stream")) keys.text("stream", request.stream);
    } else {
      keys.fail("op", "must be \"list\", \"next\" or \"release\"");
    }
  }
  if (!keys.status().ok()) return keys.status();
  return request;
}

}  // namespace wherry::move
