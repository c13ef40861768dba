// SPDX-License-Identifier: Apache-2.0
// The path profile: what `wherry probe profile` measured on a machine, and the settings that follow from it by named
// rules (docs/guide/profile.md). Programs use such a setting if the user has not set it.
//
// Only the writer (python/wherry/probe/profile.py) applies the rules, so each rule exists once. The file holds results
// and figures. Readers check that the profile is for their machine, and check each value like one that a user set.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/machine.hpp"
#include "wherry/status.hpp"

namespace wherry {

struct Profile {
  struct Advice {
    std::string value;  ///< as a person would write it
    std::string rule;   ///< its name in docs/guide/profile.md
    std::string why;    ///< the figures that it comes from
  };
  MachineKey machine;
  std::string date;                        ///< of the measurement, ISO 8601
  std::map<std::string, Advice> settings;  ///< by key: "move.transfer_unit"
};

/// The largest profile in bytes.
inline constexpr std::size_t kMaxProfileBytes = std::size_t{4} << 20;

/// Parses the text of a profile; `text` may hold any bytes. kInvalidArgument: the message names the fault.
[[nodiscard]] Result<Profile> parse_profile(std::string_view text);

/// The default file of the profile: $XDG_CACHE_HOME/wherry/profile.json, or below ~/.cache; empty if there is no home.
[[nodiscard]] std::string default_profile_file();

/// Reads the profile of this machine. kNotFound: there is no such file. kPermissionDenied: others could have written it
/// (it must belong to this user or root, and others must not be able to write to it). kInvalidArgument: it is not a
/// profile, or it belongs to another machine.
[[nodiscard]] Result<Profile> load_profile(const std::string& path, const MachineKey& machine = this_machine());

}  // namespace wherry
