// SPDX-License-Identifier: Apache-2.0
// Fuzz target: messages of several types. The first byte selects the type. A value that was read must be written as the
// same value again, and also as the same bytes if only one encoding exists.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "route/client/codec_testing.hpp"

using namespace wherry::route;

namespace {

enum class Order : std::uint8_t { kOne, kAny };

template <typename T>
void check(ByteView message, Order order = Order::kOne) {
  T value{};
  if (!Codec<T>::read(message, value)) return;
  std::vector<std::byte> again;
  Codec<T>::write(again, value);
  if (again.size() != message.size()) std::abort();
  if (order == Order::kOne && !std::ranges::equal(again, message)) std::abort();
  T twice{};
  if (!Codec<T>::read(again, twice) || !(twice == value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // Copy to separate memory, so that AddressSanitizer detects a read of the first byte after it.
  const auto copy = std::make_unique<std::byte[]>(size - 1);
  std::copy_n(reinterpret_cast<const std::byte*>(data + 1), size - 1, copy.get());
  const ByteView message(copy.get(), size - 1);
  switch (data[0] % 8) {
    case 0:
      check<std::string>(message);
      break;
    case 1:
      check<std::vector<std::vector<std::uint32_t>>>(message);
      break;
    case 2:
      check<Page>(message, Order::kAny);  // keys of a map may come in any order
      break;
    case 3:
      check<Tree>(message);
      break;
    case 4:
      check<std::unordered_map<std::string, std::set<std::uint16_t>>>(message, Order::kAny);
      break;
    case 5:
      check<std::tuple<std::deque<bool>, std::optional<std::pair<std::string, std::array<std::uint8_t, 3>>>, Digits>>(
          message);
      break;
    case 6:
      check<std::vector<std::optional<std::array<std::uint64_t, 64>>>>(message);
      break;
    default:
      check<std::vector<std::pair<Digits, std::array<std::vector<bool>, 2>>>>(message);
  }
  return 0;
}
