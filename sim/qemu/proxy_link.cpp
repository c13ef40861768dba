// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/proxy_link.hpp"

#include "base/try.hpp"

namespace wherry::sim {

Result<bool> ProxyLink::serve() {
  // The next message follows an answer within some 10 us, so polling again costs less than sleeping.
  constexpr int kLooks = 40;
  bool any = false;
  for (int look = 0; look < (any ? kLooks : 1); ++look) {
    WHERRY_ASSIGN(const bool some, channel_.fill());
    if (!some) continue;
    for (;;) {
      WHERRY_ASSIGN(const auto parsed, parse_proxy_message(channel_.bytes()));
      if (!parsed) break;
      if (const auto answer = card_.handle(parsed->message)) channel_.put(proxy_answer(*answer));
      channel_.consume(parsed->bytes);
      target_.tick();
      any = true;
      look = 0;
    }
    WHERRY_TRY(channel_.flush());
  }
  return any;
}

}  // namespace wherry::sim
