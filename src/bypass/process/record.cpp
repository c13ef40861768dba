// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/record.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/secure_directory.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"

namespace wherry::bypass {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kStartField = 22;  // of /proc/<pid>/stat (proc(5)), of which the first two lie before the last ")"

}  // namespace

std::uint64_t process_start(pid_t pid) {
  const auto text = read_text_file(fmt::format("/proc/{}/stat", pid), "the process's state", 4096);
  if (!text) return 0;
  const std::size_t end = text->rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(text->substr(end + 1));
  std::string field;
  for (int i = 3; i <= kStartField && fields >> field; ++i)
    if (i == 3 && field == "Z") return 0;
  try {
    return std::stoull(field);
  } catch (const std::exception&) {
    return 0;
  }
}

std::string record_text(const Record& record) {
  json lent = json::array();
  for (const pci::Lent& one : record.lent) lent.push_back({{"function", one.at.text()}, {"driver", one.driver}});
  return json{{"pid", record.pid},
              {"started", record.started},
              {"nic", record.nic.text()},
              {"card", record.card.text()},
              {"lent", lent}}
             .dump() +
         "\n";
}

Result<Record> parse_record(const std::string& text) {
  const Status wrong(StatusCode::kProtocol, "it is not a record of `wherry bypass up`");
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return wrong;
  const auto address = [](const json& value) -> Result<pci::BusAddress> {
    return pci::parse_bus_address(value.is_string() ? value.get<std::string>() : std::string());
  };
  Record record;
  const json pid = document.value("pid", json()), started = document.value("started", json());
  if (!pid.is_number_integer() || !started.is_number_unsigned()) return wrong;
  record.pid = pid.get<pid_t>();
  record.started = started.get<std::uint64_t>();
  WHERRY_ASSIGN(record.nic, address(document.value("nic", json())));
  WHERRY_ASSIGN(record.card, address(document.value("card", json())));
  const json lent = document.value("lent", json());
  if (!lent.is_array() || lent.size() > 16) return wrong;
  for (const json& one : lent) {
    if (!one.is_object()) return wrong;
    const json driver = one.value("driver", json());
    if (!driver.is_string()) return wrong;
    pci::Lent entry;
    WHERRY_ASSIGN(entry.at, address(one.value("function", json())));
    entry.driver = driver.get<std::string>();
    // The driver's name becomes part of a path and of a message.
    const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
    if (entry.driver.size() > 64 || !std::ranges::all_of(entry.driver, plain)) return wrong;
    record.lent.push_back(std::move(entry));
  }
  return record;
}

std::string RecordStore::file_of(pci::BusAddress nic) const {
  return fmt::format("{}/{}.json", directory_, nic.text());
}

std::string RecordStore::socket_of(pci::BusAddress nic) const {
  return fmt::format("{}/{}.socket", directory_, nic.text());
}

Status RecordStore::write(const Record& record) const {
  WHERRY_ASSIGN(const Fd directory,
                secure_directory(directory_, 0700, "it must belong to the user that runs `wherry bypass up`"));
  const std::string name = record.nic.text() + ".json", fresh = name + ".new", text = record_text(record);
  ::unlinkat(directory.get(), fresh.c_str(), 0);
  const Fd file(::openat(directory.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  // The record must be on disk, or at least in /run, before any function is taken: a killed process cannot write it
  // later.
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0 || ::renameat(directory.get(), fresh.c_str(), directory.get(), name.c_str()) != 0)
    return {StatusCode::kUnavailable,
            fmt::format("{}: {}", file_of(record.nic), std::generic_category().message(errno))};
  return {};
}

Result<std::optional<Record>> RecordStore::read(pci::BusAddress nic) const {
  const std::string path = file_of(nic);
  auto text = read_text_file(path, "the record of `wherry bypass up`", 65'536);
  if (!text && text.status().code() == StatusCode::kNotFound) return std::optional<Record>();
  WHERRY_TRY(text);
  auto record = parse_record(*text);
  if (!record || record->nic != nic)
    return Status(StatusCode::kProtocol,
                  fmt::format("{} is not a record of `wherry bypass up`: remove it, and see which driver {} has", path,
                              nic.text()));
  return std::optional(*std::move(record));
}

Status RecordStore::readable() const {
  if (::access(directory_.c_str(), R_OK | X_OK) == 0 || errno == ENOENT) return {};
  return {StatusCode::kPermissionDenied, fmt::format("{}: {}: run it as the user that ran `wherry bypass up`",
                                                     directory_, std::generic_category().message(errno))};
}

std::vector<Record> RecordStore::all() const {
  std::vector<Record> records;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    const auto nic = pci::parse_bus_address(entry->path().stem().string());
    if (!nic) continue;
    if (auto record = read(*nic); record && record->has_value()) records.push_back(**std::move(record));
  }
  std::ranges::sort(records, {}, &Record::nic);
  return records;
}

void RecordStore::remove(pci::BusAddress nic) const noexcept {
  ::unlink(file_of(nic).c_str());
  ::unlink(socket_of(nic).c_str());
}

bool RecordStore::alive(const Record& record) {
  return record.started != 0 && process_start(record.pid) == record.started;
}

Result<std::vector<std::string>> RecordStore::mend(const Record& record, const pci::Binding& binding) const {
  std::vector<std::string> done;
  Status first;
  for (auto lent = record.lent.rbegin(); lent != record.lent.rend(); ++lent) {
    const std::string before = binding.driver_of(lent->at);
    if (Status back = binding.give_back(*lent); !back) {
      if (first.ok()) first = back;
      continue;
    }
    if (before != lent->driver && !lent->driver.empty())
      done.push_back(fmt::format("Process {} had ended without giving {} back: driver {} has it again.", record.pid,
                                 lent->at.text(), lent->driver));
  }
  if (!first) return first;
  remove(record.nic);
  return done;
}

}  // namespace wherry::bypass
