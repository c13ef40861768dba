// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <deque>

#include "base/try.hpp"
#include "kv/peers/peer.hpp"
#include "kv/peers/resp.hpp"

namespace wherry::kv::bench {
namespace {

class Redis final : public Peer {
 public:
  Redis(TcpStream stream, std::uint32_t value_bytes)
      : stream_(std::move(stream)), value_bytes_(value_bytes), set_value_(fmt::format("\r\n${}\r\n", value_bytes)) {}

  void read(std::uint32_t tag, std::uint64_t key) override {
    stream_.append("*2\r\n$3\r\nGET\r\n$8\r\n");
    append_key(key);
    stream_.append("\r\n");
    expected_.push_back({Wanted::value, tag});
  }

  void write(std::uint32_t tag, std::uint64_t key, ByteView value) override {
    stream_.append("*3\r\n$3\r\nSET\r\n$8\r\n");
    append_key(key);
    stream_.append(set_value_);
    stream_.append(value);
    stream_.append("\r\n");
    expected_.push_back({Wanted::stored, tag});
    unacknowledged_ = true;
  }

  wherry::Status flush() override {
    if (unacknowledged_) {
      stream_.append("*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n");
      expected_.push_back({Wanted::replicas, 0});
      unacknowledged_ = false;
    }
    return stream_.flush();
  }

  wherry::Status poll(std::vector<std::uint32_t>& ended) override {
    WHERRY_ASSIGN(const auto more, stream_.receive());
    if (!more) return {};
    while (const auto reply = first_reply(stream_.arrived())) {
      if (expected_.empty() || reply->kind == 0) return {StatusCode::kProtocol, "Redis: that is no reply to anything"};
      WHERRY_TRY(take(*reply, ended));
      stream_.consume(reply->bytes);
    }
    return {};
  }

  void wait(Idle how) const noexcept override { stream_.wait(how); }

 private:
  enum class Wanted : std::uint8_t { value, stored, replicas };
  struct Expected {
    Wanted what;
    std::uint32_t tag;
  };

  void append_key(std::uint64_t key) {
    std::array<std::byte, sizeof key> bytes;
    std::memcpy(bytes.data(), &key, sizeof key);
    stream_.append(bytes);
  }

  wherry::Status take(const RespReply& reply, std::vector<std::uint32_t>& ended) {
    const Expected expected = expected_.front();
    expected_.pop_front();
    if (reply.kind == '-') return {StatusCode::kInternal, fmt::format("Redis: {}", reply.text)};
    switch (expected.what) {
      case Wanted::value:
        if (reply.kind != '$' || reply.number != value_bytes_)
          return {StatusCode::kInternal, fmt::format("Redis: a value of {} bytes, not {}", reply.number, value_bytes_)};
        ended.push_back(expected.tag);
        return {};
      case Wanted::stored:
        if (reply.text != "OK") return {StatusCode::kInternal, "Redis: SET was not answered by OK"};
        stored_.push_back(expected.tag);
        return {};
      case Wanted::replicas:
        if (reply.kind != ':' || reply.number < 1)
          return {StatusCode::kInternal, "Redis: WAIT came back without a replica that has the writes"};
        ended.insert(ended.end(), stored_.begin(), stored_.end());
        stored_.clear();
        return {};
    }
    return {};
  }

  TcpStream stream_;
  std::int64_t value_bytes_;
  std::string set_value_;
  std::deque<Expected> expected_;      ///< in the order of the replies
  std::vector<std::uint32_t> stored_;  ///< by the leader, not known to be anywhere else
  bool unacknowledged_ = false;        ///< a write was posted after the last WAIT
};

}  // namespace

Result<std::unique_ptr<Peer>> connect_redis(const std::string& at, std::uint32_t value_bytes) {
  WHERRY_ASSIGN(auto stream, TcpStream::connect(at));
  return std::unique_ptr<Peer>(std::make_unique<Redis>(std::move(stream), value_bytes));
}

}  // namespace wherry::kv::bench
