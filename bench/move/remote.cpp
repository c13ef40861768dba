// SPDX-License-Identifier: Apache-2.0
#include "remote.hpp"

#include "common/measure.hpp"
#include "session/session_core.hpp"

namespace wherry::bench {

Bytes Remote::call(std::string_view method, ByteView payload) {
  return require(session_.core()->request(kBenchService, method, payload), method);
}

std::uint32_t Remote::attach(const fabric::Region& region) {
  const std::uint32_t id = next_id_++;
  Bytes key;
  require(region.pack_key(key), "pack_key");
  Writer out;
  out.put(id);
  out.put(reinterpret_cast<std::uint64_t>(region.data()));
  out.put(static_cast<std::uint64_t>(region.size()));
  out.put_bytes(key);
  call("attach", out.bytes());
  return id;
}

void Remote::detach(std::uint32_t id) {
  Writer out;
  out.put(id);
  call("detach", out.bytes());
}

std::vector<double> Remote::run(const WorkRequest& request) {
  const Bytes answer = [&] {
    const Busy busy;
    return call("run", encode(request));
  }();
  Reader in(answer);
  std::vector<double> times;
  for (std::uint32_t i = 0; i < request.repeat; ++i) times.push_back(static_cast<double>(in.get<std::uint64_t>()));
  if (!in.at_end()) throw std::runtime_error("BenchService gave a malformed answer");
  return times;
}

void Remote::release() { call("release", {}); }

}  // namespace wherry::bench
