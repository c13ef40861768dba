// SPDX-License-Identifier: Apache-2.0
#include "route/address.hpp"

namespace wherry::route {

void encode(const Address& address, Writer& out) {
  out.put_string(address.host);
  out.put(address.pid);
  out.put(address.inbox.inputs);
  out.put(address.inbox.ring.buffers);
  out.put(address.inbox.ring.buffer_bytes);
  out.put(address.key.base);
  out.put(address.key.size);
  out.put_bytes(address.key.key);
  out.put_bytes(address.shm_worker);
  out.put_bytes(address.net_worker);
  out.put(address.secret);
}

Result<Address> decode_address(Reader& in) {
  Address address;
  const auto bytes = [&] {
    const ByteView view = in.get_bytes();
    return Bytes(view.begin(), view.end());
  };
  address.host = in.get_string();
  address.pid = in.get<std::uint32_t>();
  address.inbox.inputs = in.get<std::uint32_t>();
  address.inbox.ring.buffers = in.get<std::uint32_t>();
  address.inbox.ring.buffer_bytes = in.get<std::uint32_t>();
  address.key.base = in.get<std::uint64_t>();
  address.key.size = in.get<std::uint64_t>();
  address.key.key = bytes();
  address.shm_worker = bytes();
  address.net_worker = bytes();
  address.secret = in.get<std::uint64_t>();
  if (!in.ok() || !address.inbox.ring.valid() || address.inbox.inputs == 0 || address.inbox.inputs > 2 * kMaxRanks ||
      (address.key.size != 0 && address.key.size != address.inbox.bytes()))
    return Status(StatusCode::kProtocol,
                  "the address of another process is malformed: are all processes of the job of one version?");
  return address;
}

}  // namespace wherry::route
