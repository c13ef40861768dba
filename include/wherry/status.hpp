// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every Wherry call reports its outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#define WHERRY_API [[gnu::visibility("default")]]

namespace wherry {

/// The codes are grouped by what failed: nothing (kOk), nothing yet (kWouldBlock), the call (kInvalidArgument to
/// kUnsupported), one operation (kDeadlineExceeded to kSourceFault), the session (kUnavailable to kVersionMismatch), or
/// Wherry (kInternal). The numbers are part of the wire format and the C ABI: append new ones, never renumber.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kWouldBlock = 1,       ///< back-pressure: nothing happened, call again later; not an error, never logged
  kInvalidArgument = 2,  ///< the call is wrong; the message gives the reason and the remedy
  kNotFound = 3,         ///< no stream, frame, file or region of that name
  kAlreadyExists = 4,
  kUnsupported = 5,         ///< a type, transport or option that Wherry does not offer; the message names it
  kFailedPrecondition = 6,  ///< valid call, wrong time (such as unregistering a region with transfers in flight)
  kDeadlineExceeded = 7,    ///< the call's time is over; the awaited event may still happen
  kResourceExhausted = 8,   ///< larger than the budget can ever hold, or more than one session may request
  kSourceFault = 9,         ///< the agent could not read the host's memory
  kCancelled = 10,          ///< the stream or session was closed before, or the offload's own deadline passed
  kUnavailable = 11,        ///< no agent is reachable, or it died
  kPermissionDenied = 12,   ///< wrong token
  kVersionMismatch = 13,
  kProtocol = 14,  ///< bytes that are not of Wherry's protocol
  kInternal = 15,
};

/// The code's name, such as "invalid argument" or "would block"; static text.
WHERRY_API std::string_view to_string(StatusCode code) noexcept;

/// Success, would-block, or an error with a message that is built once, where the cause is known. Cheap to return: a
/// success does not own memory.
class [[nodiscard]] WHERRY_API Status {
 public:
  Status() noexcept = default;  ///< success
  /// A failure: its code, and a message that callers pass on.
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  /// Back-pressure: nothing happened. This status has no message.
  static Status would_block() { return {StatusCode::kWouldBlock, {}}; }

  /// True for success only; would-block is false.
  [[nodiscard]] bool ok() const noexcept { return code_ == StatusCode::kOk; }
  /// True for would-block only.
  [[nodiscard]] bool is_would_block() const noexcept { return code_ == StatusCode::kWouldBlock; }
  /// As ok().
  explicit operator bool() const noexcept { return ok(); }

  /// kOk for a success.
  [[nodiscard]] StatusCode code() const noexcept { return code_; }
  /// What failed, the cause and what to do. Empty for success and would-block. Lives as long as this status.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// The code and the message: "source fault: buffer 3 could not be read ..."
  [[nodiscard]] std::string to_string() const;

 private:
  template <typename T>
  friend class Result;
  /// Called when the value of a failed Result is used: prints this status to standard error and aborts.
  [[noreturn]] void no_value() const noexcept;

  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// A success. (Status::ok() is the question whether a status is a success, as in absl, Arrow and gRPC.)
inline Status ok_status() noexcept { return {}; }

/// A value, or the Status that explains why there is no value.
template <typename T>
class [[nodiscard]] Result {
 public:
  /// Success, with this value.
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// A failure. An ok status without a value becomes kInternal.
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "a Result was made from an ok Status without a value");
  }

  /// True if there is a value.
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  /// As ok().
  explicit operator bool() const noexcept { return ok(); }
  /// The reason why there is no value; a success if there is a value.
  [[nodiscard]] const Status& status() const& noexcept { return status_; }
  /// status() of a temporary: moves the status out.
  [[nodiscard]] Status status() && noexcept { return std::move(status_); }

  /// The value. Precondition: ok(). Otherwise it prints the status and aborts the program.
  T& value() & noexcept {
    check();
    return *value_;
  }
  /// value() of a constant Result.
  const T& value() const& noexcept {
    check();
    return *value_;
  }
  /// value() of a temporary: moves the value out.
  T&& value() && noexcept {
    check();
    return *std::move(value_);
  }
  /// As value().
  T& operator*() & noexcept { return value(); }
  /// As value(), for a constant Result.
  const T& operator*() const& noexcept { return value(); }
  /// As value(), for a temporary Result.
  T&& operator*() && noexcept { return std::move(*this).value(); }
  /// A member of the value. Precondition: ok().
  T* operator->() noexcept { return &value(); }
  /// A member of the value of a constant Result.
  const T* operator->() const noexcept { return &value(); }
  /// The value, or `other` if there is none.
  [[nodiscard]] T value_or(T other) && { return value_ ? *std::move(value_) : std::move(other); }

 private:
  void check() const noexcept {
    if (!value_) [[unlikely]]
      status_.no_value();
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace wherry
