// SPDX-License-Identifier: Apache-2.0
// The path profile: what `wherry probe profile` measured on a machine, and the settings that follow from it by named
// rules (docs/profile.md). Whoever has such a setting takes it from here, unless a person set it.
//
// The rules are applied where the profile is written (python/wherry/probe/profile.py), so that each exists once; the
// file has their results beside the figures. Readers check that the machine is theirs, and each value as they check a
// person's.
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
    std::string rule;   ///< its name in docs/profile.md
    std::string why;    ///< the figures that it comes from
  };
  MachineKey machine;
  std::string date;                        ///< of the measurement, ISO 8601
  std::map<std::string, Advice> settings;  ///< by key: "move.transfer_unit"
};

/// Bytes of the largest profile.
inline constexpr std::size_t kMaxProfileBytes = std::size_t{4} << 20;

/// What a profile's text says; any bytes are allowed. kInvalidArgument says what is wrong.
[[nodiscard]] Result<Profile> parse_profile(std::string_view text);

/// Where profiles lie unless a person says otherwise: $XDG_CACHE_HOME/wherry/profile.json, or below ~/.cache; empty:
/// there is no home.
[[nodiscard]] std::string default_profile_file();

/// Reads the profile of this machine. kNotFound: there is no such file. kPermissionDenied: others could have written it
/// (it must belong to this user or root, and be writable for nobody else). kInvalidArgument: it is none, or another
/// machine's.
[[nodiscard]] Result<Profile> load_profile(const std::string& path, const MachineKey& machine = this_machine());

}  // namespace wherry
