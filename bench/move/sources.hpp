// SPDX-License-Identifier: Apache-2.0
// The application's data: float64 columns, registered with the session and known to BenchService.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "harness.hpp"

namespace wherry::bench {

enum class Memory : std::uint8_t {
  kMemalign,  ///< heap, page-aligned, registered once
  kMalloc,    ///< heap, 16 bytes into a page
  kMapped,    ///< allocated by Wherry, mapped by the agent
};

/// One allocation, registered with the session for the lifetime of this object.
class SourceBlock {
 public:
  SourceBlock(Bench& bench, std::size_t bytes, Memory kind);
  ~SourceBlock();
  SourceBlock(SourceBlock&& other) noexcept;
  SourceBlock& operator=(SourceBlock&&) = delete;
  SourceBlock(const SourceBlock&) = delete;
  SourceBlock& operator=(const SourceBlock&) = delete;

  [[nodiscard]] std::span<double> values() const noexcept { return values_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return std::as_writable_bytes(values_); }
  [[nodiscard]] Segment segment() const noexcept {
    return {remote_id_, reinterpret_cast<std::uint64_t>(values_.data()), values_.size_bytes()};
  }

 private:
  Bench* bench_;
  void* owned_ = nullptr;
  std::span<double> values_;
  Region region_;               ///< heap: registered with the session
  fabric::Region remote_view_;  ///< heap: registered again, for BenchService
  std::uint32_t index_ = 0;     ///< mapped: the session's entry
  Memory kind_;
  std::uint32_t remote_id_ = 0;
};

/// `bytes` in `columns` equal columns, each with its own allocation, like an application's vectors.
class Source {
 public:
  Source(Bench& bench, int columns, std::size_t bytes, Memory kind = Memory::kMemalign);
  /// Places the columns one after the other in `block`, which must outlive the source.
  Source(const SourceBlock& block, int columns, std::size_t bytes);

  [[nodiscard]] std::span<const Column> columns() const noexcept { return columns_; }
  [[nodiscard]] std::span<const std::span<const double>> values() const noexcept { return values_; }
  [[nodiscard]] std::span<const std::span<const std::byte>> raw() const noexcept { return raw_; }
  [[nodiscard]] const std::vector<Segment>& segments() const noexcept { return segments_; }
  /// The application's own work: every value changes.
  void compute();
  /// Overwrites everything with plain numbers.
  void reset();

 private:
  void add(std::span<double> values, Segment segment);

  std::vector<SourceBlock> blocks_;
  std::vector<Segment> segments_;
  std::vector<std::span<double>> own_;
  std::vector<Column> columns_;
  std::vector<std::span<const double>> values_;
  std::vector<std::span<const std::byte>> raw_;
};

Schema schema_of(const std::vector<std::string>& names);

}  // namespace wherry::bench
