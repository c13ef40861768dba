// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/window_bus.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace wherry::sim {
namespace {

constexpr std::uint32_t kLine = 64;
static_assert(memory::kBeatBytes == kLine);

std::uint32_t beat_bytes(const memory::AxiAddress& address) { return 1U << address.size; }
/// The address after a burst's last byte.
std::uint64_t end_of(const memory::AxiAddress& address) {
  return address.address / beat_bytes(address) * beat_bytes(address) +
         std::uint64_t{address.length + 1} * beat_bytes(address);
}

}  // namespace

void WindowBus::step(std::span<const memory::AxiRequest> in) {
  const memory::AxiRequest& request = in[0];
  if (request.ar_valid && out_.ar_ready) {
    const auto bytes = static_cast<std::uint32_t>(end_of(request.ar) - request.ar.address);
    reads_.push_back({.address = request.ar});
    read_bytes_ += bytes;
    function_.post_local_read(
        {.offset = static_cast<std::uint32_t>(request.ar.address), .bytes = bytes, .size = request.ar.size});
  }
  if (out_.r_valid && request.r_ready) {
    if (out_.r_last) {
      reads_.pop_front();
      function_.local_answers().pop_front();
    } else {
      ++reads_.front().beat;
    }
  }
  if (request.aw_valid && out_.aw_ready) addresses_.push_back(request.aw);
  if (request.w_valid && out_.w_ready) {
    if (!filling_) data_.emplace_back();
    data_.back().push_back(request);
    filling_ = !request.w_last;
  }
  while (!addresses_.empty() && (data_.size() > 1 || (data_.size() == 1 && !filling_))) hand_over();
  if (out_.b_valid && request.b_ready) answers_.pop_front();
  drive();
}

/// Hands over the first burst, which is complete: from its first byte with a strobe to its last.
void WindowBus::hand_over() {
  const memory::AxiAddress address = addresses_.front();
  const std::uint64_t base = address.address / kLine * kLine;
  std::uint64_t first = ~std::uint64_t{0}, end = 0;
  std::vector<std::byte> bytes(data_.front().size() * kLine);
  for (std::size_t beat = 0; beat < data_.front().size(); ++beat) {
    const memory::AxiRequest& one = data_.front()[beat];
    std::memcpy(bytes.data() + beat * kLine, one.w_data.data(), kLine);
    if (one.w_strobes == 0) continue;
    first = std::min<std::uint64_t>(first, beat * kLine + static_cast<unsigned>(std::countr_zero(one.w_strobes)));
    end = beat * kLine + kLine - static_cast<unsigned>(std::countl_zero(one.w_strobes));
  }
  if (end > first) {
    written_bytes_ += end - first;
    const std::uint64_t number = function_.post_local_write({.offset = static_cast<std::uint32_t>(base + first),
                                                             .bytes = static_cast<std::uint32_t>(end - first),
                                                             .size = kLineSize},
                                                            std::span(bytes).subspan(first, end - first));
    answers_.push_back({.id = address.id, .number = number});
  } else {
    answers_.push_back({.id = address.id, .number = 0});
  }
  addresses_.pop_front();
  data_.pop_front();
}

void WindowBus::drive() {
  out_ = {};
  out_.ar_ready = out_.aw_ready = out_.w_ready = true;
  if (!reads_.empty() && !function_.local_answers().empty()) {
    const ReadBurst& read = reads_.front();
    const RtlFunction::LocalAnswer& answer = function_.local_answers().front();
    const std::uint64_t from = read.address.address,
                        line = (from / kLine + read.beat) * kLine;  // single beats of less lie in one line
    const std::uint64_t begin = std::max(from, line), end = std::min(end_of(read.address), line + kLine);
    if (!answer.failed)
      std::memcpy(reinterpret_cast<std::byte*>(out_.r_data.data()) + (begin - line),
                  answer.data.data() + (begin - from), end - begin);
    out_.r_valid = true;
    out_.r_error = answer.failed;
    out_.r_id = read.address.id;
    out_.r_last = read.beat == read.address.length;
  }
  if (!answers_.empty() && function_.core().window().writes_answered() >= answers_.front().number) {
    out_.b_valid = true;
    out_.b_id = answers_.front().id;
  }
}

}  // namespace wherry::sim
