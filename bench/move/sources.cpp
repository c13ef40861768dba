// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <cstdlib>
#include <new>
#include <numeric>

#include "session/session_core.hpp"

namespace wherry::bench {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMallocHeader = 16;

}  // namespace

SourceBlock::SourceBlock(Bench& bench, std::size_t bytes, Memory kind) : bench_(&bench), kind_(kind) {
  auto* core = bench.session.core();
  if (kind == Memory::kMapped) {
    // Does what Session::allocate does, and also shows the key.
    fabric::Region region = require(core->context().allocate(bytes), "allocate");
    values_ = {reinterpret_cast<double*>(region.data()), bytes / sizeof(double)};
    remote_id_ = bench.remote.attach(region);
    index_ = require(core->add_region(std::move(region)), "add_region");
  } else {
    const std::size_t shift = kind == Memory::kMalloc ? kMallocHeader : 0;
    if (posix_memalign(&owned_, kPage, bytes + shift) != 0) throw std::bad_alloc();
    values_ = {reinterpret_cast<double*>(static_cast<std::byte*>(owned_) + shift), bytes / sizeof(double)};
    region_ = require(bench.session.register_memory(values_.data(), bytes), "register_memory");
    remote_view_ = require(core->context().register_memory(values_.data(), bytes), "register_memory");
    remote_id_ = bench.remote.attach(remote_view_);
  }
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<double>(i);
}

SourceBlock::SourceBlock(SourceBlock&& other) noexcept
    : bench_(std::exchange(other.bench_, nullptr)),
      owned_(std::exchange(other.owned_, nullptr)),
      values_(other.values_),
      region_(std::move(other.region_)),
      remote_view_(std::move(other.remote_view_)),
      index_(other.index_),
      kind_(other.kind_),
      remote_id_(other.remote_id_) {}

SourceBlock::~SourceBlock() {
  if (bench_ == nullptr) return;
  try {
    bench_->remote.detach(remote_id_);
  } catch (const std::exception&) {  // the agent is gone, and with it what it knew
  }
  if (kind_ == Memory::kMapped) bench_->session.core()->remove_region_waiting(index_);
  region_ = {};
  remote_view_ = {};
  std::free(owned_);
}

Source::Source(Bench& bench, int columns, std::size_t bytes, Memory kind) {
  const std::size_t each = bytes / static_cast<std::size_t>(columns);
  blocks_.reserve(static_cast<std::size_t>(columns));
  for (int i = 0; i < columns; ++i) {
    const SourceBlock& block = blocks_.emplace_back(bench, each, kind);
    add(block.values(), block.segment());
  }
}

Source::Source(const SourceBlock& block, int columns, std::size_t bytes) {
  const std::size_t rows = bytes / static_cast<std::size_t>(columns) / sizeof(double);
  for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
    const std::span<double> values = block.values().subspan(i * rows, rows);
    Segment segment = block.segment();
    segment.address = reinterpret_cast<std::uint64_t>(values.data());
    segment.bytes = values.size_bytes();
    add(values, segment);
  }
}

void Source::add(std::span<double> values, Segment segment) {
  segments_.push_back(segment);
  own_.push_back(values);
  columns_.emplace_back(values);
  values_.emplace_back(values);
  raw_.emplace_back(std::as_bytes(values));
}

void Source::compute() {
  for (const std::span<double> column : own_) {
    for (double& value : column) value += 1.0;
  }
}

void Source::reset() {
  for (const std::span<double> column : own_) std::iota(column.begin(), column.end(), 0.0);
}

Schema schema_of(const std::vector<std::string>& names) {
  Schema schema;
  for (const std::string& name : names) schema.push_back(field(name, "g"));
  return schema;
}

}  // namespace wherry::bench
