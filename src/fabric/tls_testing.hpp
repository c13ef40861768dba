// SPDX-License-Identifier: Apache-2.0
// For tests: authorities and their certificates from the openssl program, and the first bytes of a TLS client.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_directory.hpp"
#include "fabric/tls.hpp"

namespace wherry::testing_support {

class Certificates {
 public:
  /// Files of `name`: a certificate for `subject` ("IP:127.0.0.1"), its key, and the authority that signed it.
  fabric::TlsFiles files(const std::string& authority, const std::string& name, const std::string& subject) {
    if (!std::filesystem::exists(at(authority + ".pem")))
      run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" + authority +
          " -keyout " + at(authority + ".key") + " -out " + at(authority + ".pem"));
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + name + " -keyout " +
        at(name + ".key") + " -out " + at(name + ".csr"));
    run("printf 'subjectAltName=" + subject + "' > " + at(name + ".ext") + " && openssl x509 -req -days 2 -in " +
        at(name + ".csr") + " -CA " + at(authority + ".pem") + " -CAkey " + at(authority + ".key") +
        " -CAcreateserial -extfile " + at(name + ".ext") + " -out " + at(name + ".pem"));
    return {at(name + ".pem"), at(name + ".key"), at(authority + ".pem")};
  }

 private:
  static void run(const std::string& command) {
    ASSERT_EQ(std::system((command + " 2>/dev/null").c_str()), 0) << command;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return directory_.file(name); }
  TemporaryDirectory directory_ = *TemporaryDirectory::create("tls");
};

/// The first message of a TLS client.
inline std::vector<char> client_hello() {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(ssl);
  EXPECT_EQ(SSL_do_handshake(ssl), -1) << "it waits for the answer";
  std::vector<char> hello(static_cast<std::size_t>(BIO_pending(out)));
  EXPECT_EQ(BIO_read(out, hello.data(), static_cast<int>(hello.size())), static_cast<int>(hello.size()));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return hello;
}

}  // namespace wherry::testing_support
