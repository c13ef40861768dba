// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/stored_text.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

namespace wherry::kv::resp {
namespace {

constexpr unsigned char kMark = 0x52, kForm = 1;

}  // namespace

struct KeyNumbers::Digest {
  EVP_MD* sha256 = EVP_MD_fetch(nullptr, "SHA2-256", nullptr);  // once: looking it up takes longer than the digest
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Digest() = default;
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(sha256);
  }
};

KeyNumbers::KeyNumbers() : digest_(std::make_unique<Digest>()) {}
KeyNumbers::~KeyNumbers() = default;

std::uint64_t KeyNumbers::of(std::string_view name) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  if (EVP_DigestInit_ex2(digest_->context, digest_->sha256, nullptr) != 1 ||
      EVP_DigestUpdate(digest_->context, name.data(), name.size()) != 1 ||
      EVP_DigestFinal_ex(digest_->context, sum.data(), nullptr) != 1)
    std::abort();  // OpenSSL has no SHA-256, or no memory
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | sum[i];
  return number;
}

std::string stored_text(std::string_view name, std::string_view text) {
  std::string value;
  value.reserve(kHeadBytes + name.size() + text.size());
  value += static_cast<char>(kMark);
  value += static_cast<char>(kForm);
  value += static_cast<char>(name.size() & 0xff);
  value += static_cast<char>(name.size() >> 8);
  value += name;
  value += text;
  return value;
}

Kept find_text(std::string_view value, std::string_view name, std::string_view& text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(value[i]); };
  if (value.size() < kHeadBytes || byte(0) != kMark || byte(1) != kForm) return Kept::not_ours;
  const std::size_t length = byte(2) | static_cast<std::size_t>(byte(3)) << 8;
  if (value.size() < kHeadBytes + length) return Kept::not_ours;
  if (value.substr(kHeadBytes, length) != name) return Kept::of_another_name;
  text = value.substr(kHeadBytes + length);
  return Kept::text;
}

}  // namespace wherry::kv::resp
