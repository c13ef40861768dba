// SPDX-License-Identifier: Apache-2.0
#include "fabric/tls.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "base/socket.hpp"

namespace wherry::fabric {
namespace {

std::string last_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

// Replaces OpenSSL's own socket BIO: its write(2) raises SIGPIPE if the peer has gone.
int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const ssize_t n = ::send(fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}
int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const ssize_t n = ::recv(fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}
long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_ctrl(m, bio_control);
    return m;
  }();
  return method;
}

/// Copies memory that another thread may unmap. Returns false where a load would kill the process.
bool copy_readable(std::byte* to, const void* from, std::size_t bytes) {
  const iovec local{to, bytes}, remote{const_cast<void*>(from), bytes};
  const ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (n == static_cast<ssize_t>(bytes)) return true;
  if (n >= 0 || errno == EFAULT) return false;
  std::memcpy(to, from, bytes);  // the call is forbidden here: then nothing protects from a fault
  return true;
}

class TlsStream final : public ByteStream, private ForkWatch {
 public:
  TlsStream(Fd socket, SSL* ssl) noexcept : socket_(std::move(socket)), ssl_(ssl) { start_watching(); }
  ~TlsStream() override {
    stop_watching();
    if (!broken_ && !mark_.inherited()) (void)SSL_shutdown(ssl_);
    ERR_clear_error();
    SSL_free(ssl_);
  }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Moved read(std::span<const iovec> to) noexcept override {
    std::size_t sum = 0;
    for (const iovec& part : to) {
      std::size_t done = 0;
      while (done < part.iov_len) {
        std::size_t n = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_, static_cast<char*>(part.iov_base) + done, part.iov_len - done, &n);
        if (result != 1) return sum > 0 ? Moved{Outcome::kMoved, sum} : failed(result);
        done += n;
        sum += n;
      }
    }
    return {Outcome::kMoved, sum};
  }
  Moved write(std::span<const iovec> from) noexcept override {
    // Writes one record at a time from a copy, because OpenSSL needs the same bytes again if the socket was full.
    if (staged_ == 0) {
      std::size_t n = 0;
      for (const iovec& part : from) {
        const std::size_t some = std::min(part.iov_len, stage_.size() - n);
        if (!copy_readable(stage_.data() + n, part.iov_base, some)) {
          if (n == 0) return {Outcome::kUnreadable};
          break;
        }
        n += some;
        if (n == stage_.size()) break;
      }
      staged_ = n;
    }
    std::size_t n = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_, stage_.data(), staged_, &n);
    if (result != 1) return failed(result);
    return {Outcome::kMoved, std::exchange(staged_, 0)};
  }
  [[nodiscard]] int fd() const noexcept override { return socket_.get(); }
  [[nodiscard]] bool read_needs_room() const noexcept override { return !broken_ && SSL_want_write(ssl_) != 0; }
  [[nodiscard]] std::string kind() const override { return "tcp+tls"; }
  [[nodiscard]] Bytes binding() override {
    if (SSL_is_init_finished(ssl_) == 0) return {};
    constexpr std::string_view kLabel = "EXPORTER-wherry";
    Bytes key(32);
    if (SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(key.data()), key.size(), kLabel.data(),
                                   kLabel.size(), nullptr, 0, 0) != 1)
      key.clear();
    return key;
  }
  [[nodiscard]] std::string why() const override { return why_.empty() ? "the peer closed the connection" : why_; }

 private:
  void in_child() noexcept override { detach_descriptor(socket_.get()); }
  Moved failed(int result) noexcept {
    int error = errno;
    int what = SSL_get_error(ssl_, result);
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) return {};
    if (what == SSL_ERROR_SYSCALL && error != 0 && ERR_peek_error() == 0) {
      // The other side has closed. Its alert with the reason may be unread.
      std::size_t n = 0;
      char one = 0;
      const int read = SSL_read_ex(ssl_, &one, 1, &n);
      if (read != 1 && SSL_get_error(ssl_, read) == SSL_ERROR_SSL) what = SSL_ERROR_SSL;
    }
    if (what != SSL_ERROR_ZERO_RETURN && !attempt([&] { why_ = reason(what, error); })) why_ = no_memory().message();
    broken_ = true;
    ERR_clear_error();
    return {Outcome::kClosed};
  }
  /// Returns why the connection broke. If it was never established, sends the other side an alert.
  std::string reason(int what, int error) {
    const unsigned long code = ERR_peek_error();
    const bool begun = SSL_is_init_finished(ssl_) != 0;
    if (what == SSL_ERROR_SYSCALL && error != 0 && code == 0 && begun) return std::strerror(error);
    if (!begun && SSL_is_server(ssl_) != 0) part(ERR_GET_REASON(code));
    if (const long verdict = SSL_get_verify_result(ssl_); verdict != X509_V_OK)
      return fmt::format("TLS: the other side's certificate is refused: {}", X509_verify_cert_error_string(verdict));
    if (ERR_GET_REASON(code) == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) {
      return "TLS: the other side asks for a certificate, and this one has none: set WHERRY_TLS_CERTIFICATE and "
             "WHERRY_TLS_KEY (SessionOptions::tls), signed by the authority that the other side trusts (tls.ca)";
    }
    if (begun && code != 0 && !is_certificate_alert(ERR_GET_REASON(code))) return "TLS: " + last_error();
    return fmt::format(
        "TLS cannot be agreed on ({}): does the other side use TLS, with certificates of the same authority?",
        error != 0 && code == 0 ? std::strerror(error) : last_error());
  }
  /// Under TLS 1.3, a client may already send data when the server refuses its certificate.
  static bool is_certificate_alert(int reason) noexcept {
    return reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
           reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED || reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN ||
           reason == SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR;
  }
  /// Lets the other side learn the reason. Sends the alert that OpenSSL omits if the peer does not speak TLS, and reads
  /// the bytes that have arrived, because the kernel resets a connection with unread bytes.
  void part(int reason) noexcept {
    constexpr std::array<unsigned char, 7> kAlert{21, 3, 3, 0, 2, 2, 70};  // fatal, protocol_version
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
      (void)::send(socket_.get(), kAlert.data(), kAlert.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)::recv(socket_.get(), stage_.data(), stage_.size(), MSG_DONTWAIT);
  }
  Fd socket_;
  SSL* ssl_;
  std::array<std::byte, 16384> stage_;  ///< of what is being written
  std::size_t staged_ = 0;
  bool broken_ = false;
  ProcessMark mark_;
  std::string why_;
};

Status bad_file(const char* what, const std::string& path) {
  return {StatusCode::kInvalidArgument, fmt::format("{} '{}': {}", what, path, last_error())};
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TlsFiles tls_from_environment() {
  return {from_environment("WHERRY_TLS_CERTIFICATE"), from_environment("WHERRY_TLS_KEY"),
          from_environment("WHERRY_TLS_CA")};
}

Result<std::shared_ptr<const Tls>> Tls::make(const TlsFiles& files, bool server) {
  if (!files.any()) return std::shared_ptr<const Tls>();
  const std::string& must = server ? files.certificate : files.ca;
  if (must.empty() || files.certificate.empty() != files.key.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  server ? "TLS: a server needs tls.certificate and tls.key (WHERRY_TLS_CERTIFICATE, WHERRY_TLS_KEY)"
                         : "TLS: a client needs WHERRY_TLS_CA, and WHERRY_TLS_CERTIFICATE and WHERRY_TLS_KEY both or "
                           "neither");
  }
  auto tls = std::shared_ptr<Tls>(new Tls);
  tls->context_ = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  SSL_CTX* const context = tls->context_;
  if (context == nullptr) return Status(StatusCode::kInternal, "TLS: " + last_error());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  if (!files.certificate.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
      return bad_file("tls.certificate", files.certificate);
    if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
      return bad_file("tls.key", files.key);
  }
  if (!files.ca.empty()) {
    if (SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) return bad_file("tls.ca", files.ca);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return std::shared_ptr<const Tls>(std::move(tls));
}

Result<std::shared_ptr<const Tls>> Tls::server(const TlsFiles& files) { return make(files, true); }
Result<std::shared_ptr<const Tls>> Tls::client(const TlsFiles& files) { return make(files, false); }
Tls::~Tls() { SSL_CTX_free(context_); }

namespace {

Result<std::unique_ptr<ByteStream>> wrap(ssl_ctx_st* context, Fd socket, const std::string* host) {
  // Configures the socket as plain_stream() does.
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  tune_socket(socket.get());
  std::unique_ptr<SSL, decltype([](SSL* one) { SSL_free(one); })> owned(SSL_new(context));
  SSL* const ssl = owned.get();
  BIO* const bio = ssl == nullptr ? nullptr : BIO_new(socket_method());
  if (bio == nullptr) return Status(StatusCode::kInternal, "TLS: " + last_error());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket.get())));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_mode(ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (host == nullptr) {
    SSL_set_accept_state(ssl);
  } else {
    std::array<unsigned char, sizeof(in6_addr)> address;
    const bool numeric = inet_pton(AF_INET, host->c_str(), address.data()) == 1 ||
                         inet_pton(AF_INET6, host->c_str(), address.data()) == 1;
    if (numeric) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host->c_str());
    } else {
      SSL_set1_host(ssl, host->c_str());
      SSL_set_tlsext_host_name(ssl, host->c_str());
    }
    SSL_set_connect_state(ssl);
  }
  auto stream = std::make_unique<TlsStream>(std::move(socket), ssl);
  (void)owned.release();
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace

Result<std::unique_ptr<ByteStream>> Tls::accept(Fd socket) const { return wrap(context_, std::move(socket), nullptr); }
Result<std::unique_ptr<ByteStream>> Tls::connect(Fd socket, const std::string& host) const {
  return wrap(context_, std::move(socket), &host);
}

}  // namespace wherry::fabric
