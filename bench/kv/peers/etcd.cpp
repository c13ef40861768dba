// SPDX-License-Identifier: Apache-2.0
// A gRPC client for two calls of etcd, directly on HTTP/2, so that the measurement includes no threads of a library.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/try.hpp"
#include "kv/peers/http2.hpp"
#include "kv/peers/peer.hpp"

namespace wherry::kv::bench {
namespace {

using http2::Type;

constexpr std::size_t kGrpcPrefix = 5;  // not compressed, length in 32 bits
constexpr std::size_t kTags = 256;      // streams that may be open at once, and more

class Etcd final : public Peer {
 public:
  Etcd(TcpStream stream, const std::string& authority, std::uint32_t value_bytes)
      : stream_(std::move(stream)),
        value_bytes_(value_bytes),
        put_(http2::grpc_headers("/etcdserverpb.KV/Put", authority)),
        range_(http2::grpc_headers("/etcdserverpb.KV/Range", authority)) {
    stream_.append(http2::kPreface);
    // SETTINGS_INITIAL_WINDOW_SIZE, and the same for the connection, so replies never wait for credit from this client.
    constexpr std::array<std::uint8_t, 6> kWindow{0, 4, 0x3f, 0xff, 0xff, 0xff};
    frame(Type::settings, 0, 0, std::as_bytes(std::span(kWindow)));
    widen(0x3fff0000);
  }

  void read(std::uint32_t tag, std::uint64_t key) override {
    message_.clear();
    field(1, key_bytes(key));  // RangeRequest.key; serializable is false: the read is linearizable
    call(tag, range_, value_bytes_);
  }

  void write(std::uint32_t tag, std::uint64_t key, ByteView value) override {
    message_.clear();
    field(1, key_bytes(key));  // PutRequest.key
    field(2, value);           // PutRequest.value
    call(tag, put_, 0);
  }

  wherry::Status flush() override { return stream_.flush(); }

  wherry::Status poll(std::vector<std::uint32_t>& ended) override {
    WHERRY_ASSIGN(const auto more, stream_.receive());
    if (!more) return {};
    while (const auto frame = http2::first_frame(stream_.arrived())) {
      WHERRY_TRY(take(*frame, ended));
      stream_.consume(http2::kHeaderBytes + frame->payload.size());
    }
    return stream_.flush();  // of pings and settings
  }

  void wait(Idle how) const noexcept override { stream_.wait(how); }

 private:
  struct Call {
    std::uint32_t tag = 0;
    std::uint32_t stream = 0;
    std::size_t wanted = 0, got = 0;  ///< bytes of the reply's message, prefix included
    bool ended = false;
  };

  Call& call_of(std::uint32_t stream) noexcept { return calls_[stream / 2 % kTags]; }

  void frame(Type type, std::uint8_t flags, std::uint32_t stream, ByteView payload) {
    stream_.append(http2::header(payload.size(), type, flags, stream));
    stream_.append(payload);
  }

  void widen(std::uint32_t by) {
    constexpr auto kWindowUpdate = static_cast<Type>(8);
    const std::array<std::uint8_t, 4> bytes{static_cast<std::uint8_t>(by >> 24), static_cast<std::uint8_t>(by >> 16),
                                            static_cast<std::uint8_t>(by >> 8), static_cast<std::uint8_t>(by)};
    frame(kWindowUpdate, 0, 0, std::as_bytes(std::span(bytes)));
  }

  static std::array<std::byte, 8> key_bytes(std::uint64_t key) noexcept {
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &key, sizeof key);
    return bytes;
  }

  /// A field of bytes, shorter than 16384, of a protobuf message.
  void field(unsigned number, ByteView value) {
    const auto put = [&](std::size_t byte) { message_.push_back(static_cast<std::byte>(byte)); };
    put(number << 3 | 2);
    if (value.size() >= 128) {
      put((value.size() & 0x7f) | 0x80);
      put(value.size() >> 7);
    } else {
      put(value.size());
    }
    message_.insert(message_.end(), value.begin(), value.end());
  }

  void call(std::uint32_t tag, const std::string& headers, std::size_t wanted) {
    const std::uint32_t stream = next_stream_;
    next_stream_ += 2;
    call_of(stream) = {.tag = tag, .stream = stream, .wanted = kGrpcPrefix + wanted};
    frame(Type::headers, http2::kEndHeaders, stream, std::as_bytes(std::span(headers)));
    stream_.append(http2::header(kGrpcPrefix + message_.size(), Type::data, http2::kEndStream, stream));
    const std::array<std::uint8_t, kGrpcPrefix> prefix{0, 0, 0, static_cast<std::uint8_t>(message_.size() >> 8),
                                                       static_cast<std::uint8_t>(message_.size())};
    stream_.append(std::as_bytes(std::span(prefix)));
    stream_.append(message_);
  }

  wherry::Status take(const http2::Frame& frame, std::vector<std::uint32_t>& ended) {
    switch (static_cast<Type>(frame.type)) {
      case Type::settings:
        if ((frame.flags & http2::kAck) == 0) this->frame(Type::settings, http2::kAck, 0, {});
        return {};
      case Type::ping:
        if ((frame.flags & http2::kAck) == 0) this->frame(Type::ping, http2::kAck, 0, frame.payload);
        return {};
      case Type::reset:
        // A server may answer before it has noticed that the request is complete. Then it refuses further input (RFC
        // 9113 section 8.1), and the answer stays valid.
        if (const Call& call = call_of(frame.stream);
            http2::error_code(frame) == http2::kNoError && (call.ended || call.stream != frame.stream))
          return {};
        return failure("a call", frame);
      case Type::go_away:
        return failure("the connection", frame);
      case Type::data:
        call_of(frame.stream).got += frame.payload.size();
        received_ += frame.payload.size();
        if (received_ > kWiden) {
          widen(static_cast<std::uint32_t>(received_));
          received_ = 0;
        }
        break;
      case Type::headers:
        break;
      default:  // windows: requests in flight are smaller than the first one
        return {};
    }
    if ((frame.flags & http2::kEndStream) == 0) return {};
    Call& call = call_of(frame.stream);
    if (call.got <= call.wanted)  // a refusal has headers only
      return {StatusCode::kInternal,
              fmt::format("etcd: a reply of {} bytes to a call, want more than {}", call.got, call.wanted)};
    call.ended = true;
    ended.push_back(call.tag);
    return {};
  }

  static wherry::Status failure(const char* what, const http2::Frame& frame) {
    const auto code = http2::error_code(frame);
    const ByteView text = frame.payload.subspan(std::min<std::size_t>(frame.payload.size(), 8));  // go_away's
    return {StatusCode::kUnavailable,
            fmt::format("etcd has ended {}: HTTP/2 error {}{}{}", what, code ? std::to_string(*code) : "unknown",
                        text.empty() ? "" : ", ",
                        std::string_view(reinterpret_cast<const char*>(text.data()), text.size()))};
  }

  static constexpr std::size_t kWiden = std::size_t{1} << 28;

  TcpStream stream_;
  std::size_t value_bytes_;
  std::string put_, range_;
  Bytes message_;
  std::array<Call, kTags> calls_{};
  std::uint32_t next_stream_ = 1;
  std::size_t received_ = 0;  ///< since the connection's window was widened
};

}  // namespace

Result<std::unique_ptr<Peer>> connect_etcd(const std::string& at, std::uint32_t value_bytes) {
  WHERRY_ASSIGN(auto stream, TcpStream::connect(at));
  return std::unique_ptr<Peer>(std::make_unique<Etcd>(std::move(stream), at, value_bytes));
}

}  // namespace wherry::kv::bench
