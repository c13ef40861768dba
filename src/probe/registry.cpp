// SPDX-License-Identifier: Apache-2.0
#include "probe/registry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/try.hpp"

namespace wherry::probe {
namespace {

bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

Status check(const PathInfo& info) {
  bool good = !info.id.empty() && info.id.front() != '.' && info.id.back() != '.';
  for (std::size_t i = 0; i < info.id.size(); ++i) {
    const char c = info.id[i];
    good = good && (is_word_letter(c) || (c == '.' && info.id[i + 1] != '.'));
  }
  if (!good) {
    return {StatusCode::kInvalidArgument,
            fmt::format("path id '{}': want words of a-z, 0-9, - and _, joined by '.'", info.id)};
  }
  if (info.group.empty() || info.from.empty() || info.to.empty())
    return {StatusCode::kInvalidArgument, fmt::format("path '{}' has no group, or an end without a name", info.id)};
  return ok_status();
}

}  // namespace

Status Registry::add(PathList list) {
  Paths more = list();
  for (auto& path : more) {
    WHERRY_TRY(check(path->info()));
    if (find(path->info().id) != nullptr)
      return {StatusCode::kAlreadyExists, fmt::format("two paths have the id '{}'", path->info().id)};
    paths_.push_back(std::move(path));
  }
  return ok_status();
}

Path* Registry::find(std::string_view id) const noexcept {
  const auto at = std::ranges::find_if(paths_, [&](const auto& path) { return path->info().id == id; });
  return at == paths_.end() ? nullptr : at->get();
}

std::vector<Path*> Registry::matching(std::string_view pattern) const {
  std::vector<Path*> found;
  for (const auto& path : paths_) {
    const PathInfo& info = path->info();
    const bool below = info.id.starts_with(pattern) &&
                       (info.id.size() == pattern.size() || (pattern.empty() || info.id[pattern.size()] == '.'));
    if (below || info.group == pattern) found.push_back(path.get());
  }
  return found;
}

}  // namespace wherry::probe
