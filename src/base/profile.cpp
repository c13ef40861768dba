// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fd.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"

namespace wherry {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSchema = 1;
constexpr std::size_t kMaxText = 512;      // bytes of a value, a name or an explanation
constexpr std::size_t kMaxSettings = 256;  // more than there are
constexpr std::uint64_t kMaxCores = 65'536;
constexpr int kMaxDepth = 64;  // of lists and objects in each other

Status wrong(const std::string& what) { return {StatusCode::kInvalidArgument, "it is not a path profile: " + what}; }

/// Reads a text of limited length without control characters, because programs display and log it.
Result<std::string> text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return wrong(fmt::format("\"{}\" is not a text", key));
  std::string text = it->get<std::string>();
  if (text.size() > kMaxText) return wrong(fmt::format("\"{}\" is longer than {} bytes", key, kMaxText));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C2 80 to C2 9F encode U+0080 to U+009F, which terminals may interpret as escapes.
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (byte < ' ' || byte == 0x7F || c1) return wrong(fmt::format("\"{}\" has control characters", key));
  }
  return text;
}

Result<std::uint64_t> number_of(const Json& object, const char* key, std::uint64_t max) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned() || it->get<std::uint64_t>() > max)
    return wrong(fmt::format("\"{}\" is not a whole number up to {}", key, max));
  return it->get<std::uint64_t>();
}

Result<const Json*> object_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object()) return wrong(fmt::format("\"{}\" is missing", key));
  return &*it;
}

Result<Profile::Advice> advice_of(const std::string& key, const Json& json) {
  if (key.empty() || key.size() > kMaxText ||
      key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._") != std::string::npos)
    return wrong("a setting's name has other characters than a-z, 0-9, '.' and '_'");
  if (!json.is_object()) return wrong(fmt::format("setting {} is not an object", key));
  Profile::Advice advice;
  WHERRY_ASSIGN(advice.value, text_of(json, "value"));
  WHERRY_ASSIGN(advice.rule, text_of(json, "rule"));
  WHERRY_ASSIGN(advice.why, text_of(json, "why"));
  return advice;
}

/// Checks that only this user and root can have written the file.
Status check_owner(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd || fstat(fd.get(), &info) != 0) return ok_status();  // reading it says why
  if (!S_ISREG(info.st_mode)) return {StatusCode::kInvalidArgument, fmt::format("'{}' is not a file", path)};
  if ((info.st_uid == getuid() || info.st_uid == 0) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return ok_status();
  return {StatusCode::kPermissionDenied,
          fmt::format("'{}' must belong to this user or root, and others must not be able to write to it: chmod go-w",
                      path)};
}

}  // namespace

Result<Profile> parse_profile(std::string_view text) {
  if (text.size() > kMaxProfileBytes) return wrong(fmt::format("it has more than {} bytes", kMaxProfileBytes));
  // The parser stops at a zero byte, even if text follows.
  if (text.find('\0') != std::string_view::npos) return wrong("it has a byte of 0");
  bool deep = false;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    deep |= depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  const Json document = Json::parse(text, limit, false);
  if (deep) return wrong(fmt::format("its lists and objects are more than {} deep", kMaxDepth));
  if (!document.is_object()) return wrong("it is no JSON object");
  WHERRY_ASSIGN(const std::string name, text_of(document, "name"));
  if (name != "wherry-profile") return wrong(fmt::format("its name is '{}'", name));
  WHERRY_ASSIGN(const std::uint64_t schema, number_of(document, "schema", kMaxCores));
  if (schema != kSchema)
    return wrong(fmt::format("it has schema {}, and this is written for {}: measure again", schema, kSchema));
  Profile profile;
  WHERRY_ASSIGN(profile.date, text_of(document, "date"));
  WHERRY_ASSIGN(const Json* machine, object_of(document, "machine"));
  WHERRY_ASSIGN(profile.machine.cpu, text_of(*machine, "cpu"));
  WHERRY_ASSIGN(profile.machine.kernel, text_of(*machine, "kernel"));
  WHERRY_ASSIGN(const std::uint64_t cores, number_of(*machine, "cores", kMaxCores));
  profile.machine.cores = static_cast<unsigned>(cores);
  WHERRY_ASSIGN(const Json* settings, object_of(document, "settings"));
  if (settings->size() > kMaxSettings) return wrong(fmt::format("it has more than {} settings", kMaxSettings));
  for (const auto& [key, value] : settings->items()) {
    WHERRY_ASSIGN(profile.settings[key], advice_of(key, value));
  }
  return profile;
}

std::string default_profile_file() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)  // before threads
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? value : "";
  };
  std::string directory = variable("XDG_CACHE_HOME");
  if (directory.empty()) {
    directory = variable("HOME");
    if (directory.empty()) return "";
    directory += "/.cache";
  }
  return directory + "/wherry/profile.json";
}

Result<Profile> load_profile(const std::string& path, const MachineKey& machine) {
  WHERRY_TRY(check_owner(path));
  WHERRY_ASSIGN(const std::string text, read_text_file(path, "the path profile", kMaxProfileBytes));
  auto profile = parse_profile(text);
  if (!profile) return Status(profile.status().code(), fmt::format("'{}': {}", path, profile.status().message()));
  if (profile->machine != machine)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' is the profile of another machine ({}), this is {}: `wherry probe profile` measures it", path,
                    to_string(profile->machine), to_string(machine)));
  return profile;
}

}  // namespace wherry
