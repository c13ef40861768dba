// SPDX-License-Identifier: Apache-2.0
#include "route/client/agreement.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace wherry::route::detail {
namespace {

std::uint64_t combine(Agreement::Combine how, std::uint64_t a, std::uint64_t b) {
  using Combine = Agreement::Combine;
  const auto x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
  switch (how) {
    case Combine::kQuiesce:
    case Combine::kConfirm:
    case Combine::kSum:
      return a + b;
    case Combine::kMin:
      return std::min(a, b);
    case Combine::kMax:
      return std::max(a, b);
    case Combine::kSumDouble:
      return std::bit_cast<std::uint64_t>(x + y);
    case Combine::kMinDouble:
      return std::bit_cast<std::uint64_t>(std::min(x, y));
    case Combine::kMaxDouble:
      return std::bit_cast<std::uint64_t>(std::max(x, y));
    case Combine::kEnd:
      break;
  }
  return 0;
}

}  // namespace

Agreement::Agreement(Rank mine, TreeLinks links, std::uint32_t up, std::uint32_t down, Send send)
    : mine_(mine), links_(std::move(links)), up_(up), down_(down), send_(std::move(send)) {}

void Agreement::contribute(Combine how, Words words, std::uint64_t handlers) {
  contributed_ = true;
  if (include({round_, how, words, handlers, mine_, 0})) pass_on();
}

std::string_view Agreement::name(Combine how) noexcept {
  switch (how) {
    case Combine::kQuiesce:
    case Combine::kConfirm:
      return "quiesce()";
    case Combine::kSum:
      return "reduce() of integers, kSum";
    case Combine::kMin:
      return "reduce() of integers, kMin";
    case Combine::kMax:
      return "reduce() of integers, kMax";
    case Combine::kSumDouble:
      return "reduce() of doubles, kSum";
    case Combine::kMinDouble:
      return "reduce() of doubles, kMin";
    case Combine::kMaxDouble:
      return "reduce() of doubles, kMax";
    case Combine::kEnd:
      break;
  }
  return "an unknown call";
}

std::optional<Agreement::Words> Agreement::take_outcome() noexcept { return std::exchange(outcome_, std::nullopt); }

/// Doubles are added in the order of arrival, so the last bits of a sum may differ between runs.
bool Agreement::include(const Message& part) {
  if (arrived_ == 0) {
    sum_ = part;
  } else {
    if (part.how != sum_.how || part.handlers != sum_.handlers) {
      const auto what = part.how != sum_.how ? Mismatch::What::kCalls : Mismatch::What::kHandlers;
      const bool in_order = sum_.rank < part.rank;
      const Message &one = in_order ? sum_ : part, &other = in_order ? part : sum_;
      if (!mismatch_) mismatch_ = Mismatch{what, one.rank, other.rank, one.how, other.how};
      return false;
    }
    sum_.words = {combine(part.how, sum_.words.a, part.words.a), combine(part.how, sum_.words.b, part.words.b)};
  }
  ++arrived_;
  return true;
}

void Agreement::pass_on() {
  if (arrived_ != links_.children.size() + 1) return;
  if (!links_.parent) {
    conclude(sum_.words);
    return;
  }
  sum_.rank = mine_;
  send_(*links_.parent, up_, std::as_bytes(std::span(&sum_, 1)));
}

void Agreement::conclude(Words words) {
  Message message = sum_;
  message.words = words;
  for (const Rank child : links_.children) send_(child, down_, std::as_bytes(std::span(&message, 1)));
  outcome_ = words;
  ++round_;
  arrived_ = 0;
  contributed_ = false;
}

bool Agreement::on_report(ByteView bytes) {
  Message message{};
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.round != round_ || message.how >= Combine::kEnd || arrived_ > links_.children.size()) return false;
  if (include(message)) pass_on();
  return true;
}

bool Agreement::on_outcome(ByteView bytes) {
  Message message{};
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.round != round_ || !contributed_ || arrived_ != links_.children.size() + 1) return false;
  conclude(message.words);
  return true;
}

}  // namespace wherry::route::detail
