// SPDX-License-Identifier: Apache-2.0
// Status and Result: how every Wherry call says what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#define WHERRY_API [[gnu::visibility("default")]]

namespace wherry {

/// Grouped by what has failed: nothing (kOk), nothing yet (kWouldBlock), the call (kInvalidArgument .. kUnsupported),
/// this one operation (kDeadlineExceeded .. kSourceFault), the session (kUnavailable .. kVersionMismatch), Wherry
/// itself (kInternal). The numbers are part of the wire format and of the C ABI: append, never renumber.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kWouldBlock = 1,       ///< back-pressure: nothing happened, call again later; never logged, never an error
  kInvalidArgument = 2,  ///< the call is wrong; the message says what and how to mend it
  kNotFound = 3,         ///< no stream, frame, file or region of that name
  kAlreadyExists = 4,
  kUnsupported = 5,         ///< a type, transport or option that Wherry does not offer, by name
  kFailedPrecondition = 6,  ///< right call, wrong moment (a region with transfers in flight is unregistered, say)
  kDeadlineExceeded = 7,    ///< the call's time is over; what it waited for may still come about
  kResourceExhausted = 8,   ///< larger than the budget can ever hold, or beyond what one session may ask for
  kSourceFault = 9,         ///< the agent could not read the host's memory
  kCancelled = 10,          ///< the stream or session was closed first, or the offload's own deadline was over
  kUnavailable = 11,        ///< no agent, or it died
  kPermissionDenied = 12,   ///< wrong token
  kVersionMismatch = 13,
  kProtocol = 14,  ///< bytes that are not Wherry's
  kInternal = 15,
};

/// "invalid argument", "would block", ...; static text.
WHERRY_API std::string_view to_string(StatusCode code) noexcept;

/// Success, would-block, or an error with a message built once, where the cause is known. Cheap to return: a success
/// owns no memory.
class [[nodiscard]] WHERRY_API Status {
 public:
  Status() noexcept = default;  ///< success
  /// A failure: its code, and the message that callers pass up.
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  /// Back-pressure: nothing happened. It has no message.
  static Status would_block() { return {StatusCode::kWouldBlock, {}}; }

  /// True for success only; would-block is false.
  [[nodiscard]] bool ok() const noexcept { return code_ == StatusCode::kOk; }
  /// True for would-block only.
  [[nodiscard]] bool is_would_block() const noexcept { return code_ == StatusCode::kWouldBlock; }
  /// As ok().
  explicit operator bool() const noexcept { return ok(); }

  /// kOk for a success.
  [[nodiscard]] StatusCode code() const noexcept { return code_; }
  /// What failed, the cause and what to do; empty for success and would-block. Lives as long as this status.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// "source fault: buffer 3 could not be read ..."
  [[nodiscard]] std::string to_string() const;

 private:
  template <typename T>
  friend class Result;
  /// A failed Result was used: prints this status to standard error and aborts.
  [[noreturn]] void no_value() const noexcept;

  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// Success. (Status::ok() asks whether a status is one, as in absl, Arrow and gRPC.)
inline Status ok_status() noexcept { return {}; }

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  /// Success, with this value.
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  /// A failure. A success without a value becomes kInternal.
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "a Result was made from an ok Status without a value");
  }

  /// True if there is a value.
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  /// As ok().
  explicit operator bool() const noexcept { return ok(); }
  /// Why there is no value; a success if there is one.
  [[nodiscard]] const Status& status() const& noexcept { return status_; }
  /// The same, taken out of a temporary.
  [[nodiscard]] Status status() && noexcept { return std::move(status_); }

  /// The value. Precondition: ok(); without a value the status is printed and the program aborts.
  T& value() & noexcept {
    check();
    return *value_;
  }
  /// The same of a constant.
  const T& value() const& noexcept {
    check();
    return *value_;
  }
  /// The same, taken out of a temporary.
  T&& value() && noexcept {
    check();
    return *std::move(value_);
  }
  /// As value().
  T& operator*() & noexcept { return value(); }
  /// As value() of a constant.
  const T& operator*() const& noexcept { return value(); }
  /// As value() of a temporary.
  T&& operator*() && noexcept { return std::move(*this).value(); }
  /// A member of the value. Precondition: ok().
  T* operator->() noexcept { return &value(); }
  /// The same of a constant.
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
