// SPDX-License-Identifier: Apache-2.0
// For tests of clients: a store that answers like a cluster but is a single table for all its nodes. So every error is
// the client's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kv/message.hpp"

namespace wherry::kv::testing {

class ReferenceStore {
 public:
  struct Entry {
    std::uint32_t version = 0;
    bool present = false;
    std::vector<std::byte> value;
  };
  struct Record {
    std::uint32_t request = 0, version = 0;
    Status status = Status::ok;
  };
  struct Reply {
    Kv header;
    std::vector<std::byte> value;
    [[nodiscard]] Message message() const { return {header, value}; }
  };

  explicit ReferenceStore(std::uint8_t count) : nodes(count), records(count) {}

  std::uint8_t nodes;
  std::uint16_t epoch = 1;
  std::uint8_t shift = 0;        ///< slot s is led by node (s + shift) % nodes
  std::uint8_t not_serving = 0;  ///< bit by node
  std::uint32_t lanes = 4096;
  std::map<std::uint64_t, Entry> table;
  std::vector<std::map<std::uint16_t, Record>> records;
  std::uint64_t executed = 0;  ///< writes that were new, refused ones included

  [[nodiscard]] std::uint8_t leader_of(std::uint64_t key) const {
    return static_cast<std::uint8_t>((slot_of(hash_of(key)) + shift) % nodes);
  }

  /// Returns the answer of node `me`, or nothing if it drops the request.
  std::optional<Reply> handle(std::uint8_t me, const Message& in) {
    const Kv& h = in.header;
    Reply out{h, {}};
    out.header.kind = static_cast<std::uint8_t>(h.kind + kReplyBit);
    out.header.epoch = epoch;
    out.header.node = leader_of(h.key);
    out.header.version = 0;
    const auto kind = static_cast<Kind>(h.kind);
    const auto say = [&](Status status, std::uint32_t version = 0) {
      out.header.detail = static_cast<std::uint8_t>(status);
      out.header.version = version;
      return out;
    };
    if (kind < Kind::read || kind > Kind::ping) return std::nullopt;
    if (h.client >= lanes) return say(Status::bad_lane);
    if ((not_serving >> me & 1) != 0) return say(Status::not_serving);
    if (kind == Kind::ping) return say(Status::ok);
    if (kind == Kind::lane) {
      const Record& record = records[me][h.client];
      out.header.key = record.request;
      return say(record.status, record.version);
    }
    Entry& entry = table[h.key];
    if (kind == Kind::read) {
      if (!entry.present) return say(Status::no_such_key);
      out.value = entry.value;
      return say(Status::ok, entry.version);
    }
    if (h.epoch != epoch) return say(Status::stale_epoch);
    if (leader_of(h.key) != me) return say(Status::not_leader);
    Record& record = records[me][h.client];
    const auto ahead = static_cast<std::int32_t>(h.request - record.request);
    if (ahead < 0) return std::nullopt;
    if (ahead == 0) return say(record.status, record.version);
    ++executed;
    record = {h.request, 0, Status::ok};
    const bool conditional = kind == Kind::write_if || kind == Kind::remove_if;
    const bool removes = kind == Kind::remove || kind == Kind::remove_if;
    const std::uint32_t found = entry.present ? entry.version : 0;
    if (removes && !entry.present) {
      record.status = Status::no_such_key;
    } else if (conditional && found != h.version) {
      record.status = Status::version_mismatch;
      record.version = found;
    } else {
      entry.version += 1;
      entry.present = !removes;
      entry.value.assign(in.value.begin(), in.value.end());
      record.version = entry.version;
      for (auto& others : records) others[h.client] = record;
    }
    return say(record.status, record.version);
  }
};

}  // namespace wherry::kv::testing
