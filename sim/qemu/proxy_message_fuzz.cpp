// SPDX-License-Identifier: Apache-2.0
// Bytes from another process as messages to the card: the parser accepts exactly the messages, in pieces as well as at
// once, and no message harms the card.
#include <cstdlib>

#include "sim/bypass/echo.hpp"
#include "sim/bypass/twin.hpp"
#include "sim/qemu/proxy_card.hpp"
#include "sim/qemu/proxy_message.hpp"

using namespace wherry;
using namespace wherry::sim;

namespace {

constexpr std::uint64_t kBar = 0xD080'0000;

/// The card is reused, because making its memory takes longer than a run. After a stop, only its counts remain from the
/// run before.
void start(Twin& card, bool in_place) {
  CardSetup setup;
  setup.nic = bypass::find_personality("e1000e");
  setup.bar = kBar;
  setup.pack_bytes = 4096;
  setup.in_place = in_place;
  setup.queues = {{.rx_entries = 64, .tx_entries = 64, .first_slot = 0, .slots = 70}};
  card.stop(0);
  if (!card.configure(setup) || !card.start(0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static InPlaceEcho function;
  static Twin card(&function);
  StreamEcho stream(card);
  start(card, (data[0] & 1) != 0);
  ProxyCard proxy(card);
  (void)proxy.handle({.command = ProxyCommand::kConfigWrite, .address = 0x18, .value = kBar, .bytes = 4});

  for (ByteView in = std::as_bytes(std::span(data, size)).subspan(1);;) {
    const auto parsed = parse_proxy_message(in);
    if (!parsed) break;
    if (!*parsed) {
      if (in.size() >= kProxyHeaderBytes + kProxyMaxBody) std::abort();  // it waits for more than a message has
      break;
    }
    const ProxyMessage& message = (*parsed)->message;
    const auto again = parse_proxy_message(in.first((*parsed)->bytes));
    if (!again || !*again || parse_proxy_message(in.first((*parsed)->bytes - 1)).value_or(std::nullopt)) std::abort();
    if (proxy.handle(message).has_value() != message.wants_answer()) std::abort();
    card.tick();
    stream.turn();
    while (card.next_tail()) continue;
    if (!holds_balance(card.counters()) || !card.slots_conserved()) std::abort();
    in = in.subspan((*parsed)->bytes);
  }
  return 0;
}
