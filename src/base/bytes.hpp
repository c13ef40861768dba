// SPDX-License-Identifier: Apache-2.0
// Little-endian readers and writers for messages. A Reader never throws and never reads past its end. After a short
// read it remains failed and returns zeros. So a parser checks ok() once, before it uses the values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wherry {

static_assert(std::endian::native == std::endian::little, "wire formats are little-endian; add swaps before porting");

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

class Writer {
 public:
  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void put(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }
  void put_bytes(ByteView bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void put_string(std::string_view text) { put_bytes(std::as_bytes(std::span(text.data(), text.size()))); }

  [[nodiscard]] const Bytes& bytes() const& noexcept { return out_; }
  [[nodiscard]] Bytes&& take() && noexcept { return std::move(out_); }

 private:
  Bytes out_;
};

class Reader {
 public:
  explicit Reader(ByteView in) noexcept : in_(in) {}

  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  T get() noexcept {
    T value{};
    const ByteView raw = take(sizeof value);
    if (ok_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  /// The next length-prefixed bytes, as a view into the input.
  ByteView get_bytes() noexcept { return take(get<std::uint32_t>()); }
  std::string get_string() {
    const ByteView raw = get_bytes();
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  ByteView take(std::size_t count) noexcept {
    if (!ok_ || count > in_.size()) {
      ok_ = false;
      in_ = {};
      return {};
    }
    const ByteView head = in_.first(count);
    in_ = in_.subspan(count);
    return head;
  }

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool at_end() const noexcept { return ok_ && in_.empty(); }
  [[nodiscard]] std::size_t remaining() const noexcept { return in_.size(); }

 private:
  ByteView in_;
  bool ok_ = true;
};

}  // namespace wherry
