// SPDX-License-Identifier: Apache-2.0
// Arrays as NumPy's .npy files (format 1.0), which numpy.load reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "wherry/route_message.hpp"
#include "wherry/status.hpp"

namespace wherry::apps {

/// "PREFIX.<rank><suffix>": the file for a rank's part of a result.
std::string part_name(const std::string& prefix, route::Rank rank, const std::string& suffix);

/// Makes the directories above the file. On failure the later opening of the file reports the cause.
void make_parent(const std::string& path) noexcept;

Status write_npy(const std::string& path, std::span<const std::uint64_t> values);
Status write_npy(const std::string& path, std::span<const double> values);

}  // namespace wherry::apps
