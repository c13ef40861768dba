// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "wherry/kv.hpp"

namespace wherry::kv {

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kNoSuchKey:
      return "no such key";
    case Outcome::kVersionMismatch:
      return "version mismatch";
    case Outcome::kTableFull:
      return "table full";
    case Outcome::kTooLong:
      return "too long";
    case Outcome::kBadFrame:
      return "bad frame";
    case Outcome::kBadLane:
      return "bad lane";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kNoAnswer:
      return "no answer";
    case Outcome::kLaneTaken:
      return "lane taken";
    case Outcome::kForked:
      return "forked";
  }
  return "?";
}

StatusCode status_code(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kOk:
      return StatusCode::kOk;
    case Outcome::kNoSuchKey:
      return StatusCode::kNotFound;
    case Outcome::kVersionMismatch:
      return StatusCode::kFailedPrecondition;
    case Outcome::kTableFull:
      return StatusCode::kResourceExhausted;
    case Outcome::kTooLong:
    case Outcome::kBadLane:
      return StatusCode::kInvalidArgument;
    case Outcome::kBadFrame:
      return StatusCode::kUnsupported;
    case Outcome::kUnknown:
      return StatusCode::kDeadlineExceeded;
    case Outcome::kNoAnswer:
      return StatusCode::kUnavailable;
    case Outcome::kLaneTaken:
      return StatusCode::kCancelled;
    case Outcome::kForked:
      return StatusCode::kFailedPrecondition;
  }
  return StatusCode::kInternal;
}

namespace {

std::string sentence(Outcome outcome, std::uint32_t version) {
  switch (outcome) {
    case Outcome::kNoSuchKey:
      return "there is no such key";
    case Outcome::kVersionMismatch:
      return version == 0 ? "the version is another: there is no such key"
                          : fmt::format("the version is another: {}", version);
    case Outcome::kTableFull:
      return "the key's bucket is full: remove a key of it, or use a cluster with more buckets";
    case Outcome::kTooLong:
      return "a value has at most 1024 bytes";
    case Outcome::kBadFrame:
      return "the node does not understand this request: is its version another?";
    case Outcome::kBadLane:
      return "the nodes keep no record for lanes so high, or this client has none (lanes = 0: it only reads): "
             "configure "
             "lower ones, or some";
    case Outcome::kUnknown:
      return "the write was sent and not answered in time: it may have taken effect, or still take effect, once";
    case Outcome::kNoAnswer:
      return "no node carried it out in time; nothing was changed";
    case Outcome::kLaneTaken:
      return "another client writes through this client's lane: the write may have taken effect, once. Let the keeper "
             "grant the lanes (name the cluster file), or give each client static lanes of its own";
    case Outcome::kForked:
      return "this client was connected by another process, of which this process is a fork: connect a client here";
    case Outcome::kOk:
      break;
  }
  return {};
}

}  // namespace

wherry::Status Reply::status() const { return {status_code(outcome), sentence(outcome, version)}; }

}  // namespace wherry::kv
