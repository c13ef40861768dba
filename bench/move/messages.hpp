// SPDX-License-Identifier: Apache-2.0
// The encoding of the application's requests to BenchService: encoder and decoder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace wherry::bench {

inline constexpr std::string_view kBenchService = "bench";

/// Bytes of a region that was attached before.
struct Segment {
  std::uint32_t region = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

enum class Work : std::uint8_t {
  kGet,          ///< one get at a time into memory that is kept, two buffers in turn as move's frames
  kGetUncached,  ///< allocate, register, get, unregister, free: each time
  kCopy,         ///< memcpy from the mapped source into the two buffers
  kSmartNic,     ///< gets, then build arrays and serialise (paper 004 V-G, "SmartNIC serialization")
  kCAbi,         ///< gets into the buffers of ArrowArray structs, then import and serialise
};

enum class Alignment : std::uint8_t {
  kPage,    ///< as memalign: the buffer starts on a page
  kMalloc,  ///< as glibc's malloc for large blocks: 16 bytes into a page
};

struct WorkRequest {
  Work work = Work::kGet;
  Alignment alignment = Alignment::kPage;
  std::uint32_t repeat = 1;
  std::vector<Segment> segments;   ///< one a column; get and copy: exactly one
  std::vector<std::string> names;  ///< of the columns, for what makes Arrow
};

inline Bytes encode(const WorkRequest& m) {
  Writer out;
  out.put(m.work);
  out.put(m.alignment);
  out.put(m.repeat);
  out.put(static_cast<std::uint32_t>(m.segments.size()));
  for (const Segment& s : m.segments) {
    out.put(s.region);
    out.put(s.address);
    out.put(s.bytes);
  }
  out.put(static_cast<std::uint32_t>(m.names.size()));
  for (const std::string& name : m.names) out.put_string(name);
  return std::move(out).take();
}

/// False: not a request.
inline bool decode(ByteView bytes, WorkRequest& m) {
  Reader in(bytes);
  m.work = in.get<Work>();
  m.alignment = in.get<Alignment>();
  m.repeat = in.get<std::uint32_t>();
  const auto segments = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < segments && in.ok(); ++i) {
    Segment s;
    s.region = in.get<std::uint32_t>();
    s.address = in.get<std::uint64_t>();
    s.bytes = in.get<std::uint64_t>();
    m.segments.push_back(s);
  }
  const auto names = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < names && in.ok(); ++i) m.names.push_back(in.get_string());
  return in.at_end() && m.repeat > 0 && !m.segments.empty();
}

}  // namespace wherry::bench
