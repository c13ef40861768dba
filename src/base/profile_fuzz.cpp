// SPDX-License-Identifier: Apache-2.0
// Parses a profile of arbitrary bytes. An accepted profile must respect the limits that readers rely on, and must be
// safe to show in a terminal and in a TOML comment.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/profile.hpp"

namespace {

constexpr char kC2 = static_cast<char>(0xC2);

void check(const std::string& text) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (text.size() > 512 || std::ranges::any_of(text, control)) std::abort();
  for (std::size_t at = text.find(kC2); at != std::string::npos; at = text.find(kC2, at + 1))
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) std::abort();  // U+0080 to U+009F
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = wherry::parse_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) {
    if (profile.status().code() != wherry::StatusCode::kInvalidArgument || profile.status().message().empty())
      std::abort();
    return 0;
  }
  check(profile->date);
  check(profile->machine.cpu);
  check(profile->machine.kernel);
  if (profile->machine.cores > 65'536 || profile->settings.size() > 256) std::abort();
  for (const auto& [key, advice] : profile->settings) {
    if (key.empty()) std::abort();
    check(key);
    check(advice.value);
    check(advice.rule);
    check(advice.why);
  }
  return 0;
}
