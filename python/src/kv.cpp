// SPDX-License-Identifier: Apache-2.0
// wherry._native._kv_core: the key-value client for wherry/kv/client.py, without UCX, which takes half a second to
// load.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "kv/control/cluster_file.hpp"
#include "raise.hpp"
#include "wherry/kv.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace wherry::python {
namespace {

using std::chrono::nanoseconds;

/// Not-a-number and times over one year become one year.
nanoseconds from_seconds(double seconds) {
  constexpr double kLong = 3.2e7;
  return nanoseconds(static_cast<std::int64_t>((seconds < kLong ? std::max(seconds, 0.0) : kLong) * 1e9));
}

class PyClient {
 public:
  explicit PyClient(kv::Client client) : client_(std::move(client)) {}

  /// Posts, and waits in slices without the GIL, so other threads run and Ctrl-C works. Drops the result of an
  /// operation that ends after Ctrl-C. Returns (version, value) or raises; a mismatch's exception has `version`.
  template <typename Post>
  nb::tuple run(double deadline, const Post& post) {
    using Clock = std::chrono::steady_clock;
    const nanoseconds time = from_seconds(deadline);
    const auto end = Clock::now() + time;
    const std::uint64_t tag = ++tag_;
    StatusCode code = StatusCode::kWouldBlock;
    bool posted = false;
    for (;;) {
      std::size_t count = 0;
      {
        const nb::gil_scoped_release release;
        if (!posted) code = post(tag, std::max(nanoseconds(end - Clock::now()), nanoseconds(1)));
        posted = code == StatusCode::kOk;
        (void)client_.wait(posted ? std::chrono::milliseconds(50) : std::chrono::milliseconds(1));
        count = client_.poll(ended_);
      }
      for (std::size_t i = 0; i < count; ++i)
        if (ended_[i].tag == tag) return result(ended_[i]);
      if (code == StatusCode::kFailedPrecondition) return result({.outcome = kv::Outcome::kForked});
      if (!posted && Clock::now() >= end) return result({.outcome = kv::Outcome::kNoAnswer});
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  kv::Client& client() noexcept { return client_; }

 private:
  static nb::tuple result(const kv::Completion& c) {
    if (c.outcome == kv::Outcome::kOk) return nb::make_tuple(c.version, nb::bytes(c.value.data(), c.value.size()));
    const nb::object error = exception_of(kv::Reply{c.outcome, c.version, {}}.status());
    if (c.outcome == kv::Outcome::kVersionMismatch) error.attr("version") = c.version;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
  }

  kv::Client client_;
  std::uint64_t tag_ = 0;
  std::array<kv::Completion, 64> ended_{};
};

std::span<const std::byte> view(const nb::bytes& value) {
  return {static_cast<const std::byte*>(value.data()), value.size()};
}

PyClient* connect(std::vector<std::string> nodes, const std::string& cluster, std::vector<std::string> keepers,
                  std::optional<std::uint16_t> first_lane, std::uint32_t lanes, const std::string& reads, bool spin,
                  double first_timeout, double timeout_cap, double connect_timeout, std::uint64_t seed) {
  kv::ClientOptions options;
  options.nodes = std::move(nodes);
  options.cluster = cluster;
  options.keepers = std::move(keepers);
  options.first_lane = first_lane;
  options.lanes = lanes;
  if (reads == "nearest")
    options.reads = kv::ReadFrom::kNearest;
  else if (reads == "round_robin")
    options.reads = kv::ReadFrom::kRoundRobin;
  else if (reads == "leader")
    options.reads = kv::ReadFrom::kLeader;
  else
    raise({StatusCode::kInvalidArgument, "reads: want 'nearest', 'round_robin' or 'leader', not '" + reads + "'"});
  options.waiting = spin ? kv::Waiting::kSpin : kv::Waiting::kBlock;
  options.first_timeout = from_seconds(first_timeout);
  options.timeout_cap = from_seconds(timeout_cap);
  options.connect_timeout = from_seconds(connect_timeout);
  options.seed = seed;
  Result<kv::Client> client = Status(StatusCode::kInternal, "");
  {
    const nb::gil_scoped_release release;
    client = kv::Client::connect(options);
  }
  if (!client) raise(client.status());
  return new PyClient(*std::move(client));
}

std::string address_of(const kv::Endpoint& at) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += std::to_string(at.ip >> shift & 255) + (shift > 0 ? "." : ":");
  return text + std::to_string(at.port);
}

/// The content of a cluster file. Python reads it through the C++ library, so all programs report the same errors.
nb::dict cluster(const std::string& path) {
  const auto file = kv::load_cluster_file(path);
  if (!file) raise(file.status());
  nb::list nodes, names, macs, interfaces;
  for (const kv::ClusterNode& node : file->nodes) {
    nodes.append(node.configured ? address_of(node.endpoint) : "");
    names.append(node.name);
    macs.append(node.endpoint.mac);
    interfaces.append(node.xdp);
  }
  nb::dict out;
  out["name"] = file->name;
  out["mode"] = file->mode == kv::ClusterMode::fixed    ? "static"
                : file->mode == kv::ClusterMode::keeper ? "keeper"
                                                        : "etcd";
  nb::list keepers;
  for (const std::string& keeper : file->keepers) keepers.append(keeper);
  out["keepers"] = keepers;
  out["static_lanes"] = file->static_lanes;
  out["lanes"] = file->lanes;
  out["bucket_bits"] = file->bucket_bits;
  out["nodes"] = nodes;
  out["names"] = names;
  out["macs"] = macs;
  out["xdp"] = interfaces;
  return out;
}

}  // namespace
}  // namespace wherry::python

NB_MODULE(_kv_core, m) {
  using namespace wherry::python;
  nb::class_<PyClient>(m, "Client")
      .def(
          "get",
          [](PyClient& self, std::uint64_t key, double deadline) {
            return self.run(deadline, [&](auto tag, auto left) { return self.client().post_get(key, tag, left); });
          },
          "key"_a, "deadline"_a)
      .def(
          "put",
          [](PyClient& self, std::uint64_t key, const nb::bytes& value, double deadline) {
            const auto data = view(value);
            return self.run(deadline,
                            [&](auto tag, auto left) { return self.client().post_put(key, data, tag, left); });
          },
          "key"_a, "value"_a, "deadline"_a)
      .def(
          "put_if",
          [](PyClient& self, std::uint64_t key, std::uint32_t version, const nb::bytes& value, double deadline) {
            const auto data = view(value);
            return self.run(deadline, [&](auto tag, auto left) {
              return self.client().post_put_if(key, version, data, tag, left);
            });
          },
          "key"_a, "version"_a, "value"_a, "deadline"_a)
      .def(
          "remove",
          [](PyClient& self, std::uint64_t key, double deadline) {
            return self.run(deadline, [&](auto tag, auto left) { return self.client().post_remove(key, tag, left); });
          },
          "key"_a, "deadline"_a)
      .def(
          "remove_if",
          [](PyClient& self, std::uint64_t key, std::uint32_t version, double deadline) {
            return self.run(deadline,
                            [&](auto tag, auto left) { return self.client().post_remove_if(key, version, tag, left); });
          },
          "key"_a, "version"_a, "deadline"_a);

  m.def("connect", &wherry::python::connect, "nodes"_a, "cluster"_a, "keepers"_a, "first_lane"_a.none(), "lanes"_a,
        "reads"_a, "spin"_a, "first_timeout"_a, "timeout_cap"_a, "connect_timeout"_a, "seed"_a);
  m.def("cluster", &wherry::python::cluster, "path"_a);
}
