// SPDX-License-Identifier: Apache-2.0
#include "common/npy.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace wherry::apps {

std::string part_name(const std::string& prefix, route::Rank rank, const std::string& suffix) {
  return fmt::format("{}.{}{}", prefix, rank, suffix);
}

void make_parent(const std::string& path) noexcept {
  std::error_code ignored;  // the file cannot be opened then, and that is said
  try {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  } catch (const std::exception&) {
  }
}

namespace {

Status write(const std::string& path, const char* type, std::span<const std::byte> bytes, std::size_t count) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, count);
  constexpr std::size_t kBefore = 10;  // magic, version, length of the header; the data starts at a multiple of 64
  header.append(63 - (kBefore + header.size()) % 64, ' ');
  header += '\n';
  make_parent(path);
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return {StatusCode::kUnavailable, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
}

}  // namespace

Status write_npy(const std::string& path, std::span<const std::uint64_t> values) {
  return write(path, "<u8", std::as_bytes(values), values.size());
}
Status write_npy(const std::string& path, std::span<const double> values) {
  return write(path, "<f8", std::as_bytes(values), values.size());
}

}  // namespace wherry::apps
