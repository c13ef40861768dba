// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "base/version.hpp"
#include "kv/resp/stored_text.hpp"

namespace wherry::kv::resp {
namespace {

using Arguments = std::span<const std::string_view>;
using Text = std::optional<std::string_view>;
using What = Change::What;

constexpr const char* kNotANumber = "ERR value is not an integer or out of range";
constexpr const char* kSyntax = "ERR syntax error";
constexpr const char* kTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Plan at_once(Answer answer) { return {{}, Plan::Join::one, std::move(answer)}; }
Plan refused(std::string why) { return at_once(Answer::error(std::move(why))); }
Plan one(Edit edit) {
  Plan plan;
  plan.edits.push_back(std::move(edit));
  return plan;
}

Edit read(std::string_view name, Answer (*show)(Text) = nullptr) {
  return {.kind = Edit::Kind::read, .name = std::string(name), .show = show};
}
Edit write(std::string_view name, std::string_view text) {
  return {.kind = Edit::Kind::write, .name = std::string(name), .text = std::string(text)};
}
Edit change(std::string_view name, Decide decide) {
  return {.kind = Edit::Kind::change, .name = std::string(name), .decide = std::move(decide)};
}

Answer text_or_null(Text text) { return text ? Answer::text(*text) : Answer::null(); }

/// Parses a number in the form that Redis accepts: no blanks, no plus, no leading zeros, no "-0".
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return fmt::format("{}", value) == text ? std::optional(value) : std::nullopt;
}

// Reading.

Plan get(Arguments a, const PlanOptions&) { return one(read(a[1])); }
Plan getex(Arguments a, const PlanOptions&) {
  if (a.size() == 3 && same_word(a[2], "PERSIST")) return one(read(a[1]));
  return a.size() == 2 ? one(read(a[1])) : refused("ERR keys do not expire in this store");
}
Plan strlen_of(Arguments a, const PlanOptions&) {
  return one(read(a[1], [](Text text) { return Answer::number(text ? static_cast<std::int64_t>(text->size()) : 0); }));
}
Plan type(Arguments a, const PlanOptions&) {
  return one(read(a[1], [](Text text) { return Answer::simple(text ? "string" : "none"); }));
}
/// TTL, PTTL, EXPIRETIME, PEXPIRETIME. -1: the key never expires; -2: no such key.
Plan time_to_live(Arguments a, const PlanOptions&) {
  return one(read(a[1], [](Text text) { return Answer::number(text ? -1 : -2); }));
}
Plan persist(Arguments a, const PlanOptions&) {
  return one(read(a[1], [](Text) { return Answer::number(0); }));
}
Plan exists(Arguments a, const PlanOptions&) {
  Plan plan{.edits = {}, .join = Plan::Join::sum, .answer = {}};
  for (const std::string_view name : a.subspan(1))
    plan.edits.push_back(read(name, [](Text text) { return Answer::number(text ? 1 : 0); }));
  return plan;
}

/// The bytes from `first` to `last`, both included. Negative positions count from the end. Clipped as in Redis.
std::string_view range(std::string_view text, std::int64_t first, std::int64_t last) {
  const auto size = static_cast<std::int64_t>(text.size());
  if (first < 0 && last < 0 && first > last) return {};
  if (first < 0) first = std::max<std::int64_t>(first + size, 0);
  if (last < 0) last = std::max<std::int64_t>(last + size, 0);
  last = std::min(last, size - 1);
  if (first > last || size == 0) return {};
  return text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
}

Plan getrange(Arguments a, const PlanOptions&) {
  const auto first = number_in(a[2]), last = number_in(a[3]);
  if (!first || !last) return refused(kNotANumber);
  return one(change(a[1], [first = *first, last = *last](Text text) {
    return Change{What::leave, {}, Answer::text(range(text.value_or(std::string_view()), first, last))};
  }));
}

Plan mget(Arguments a, const PlanOptions& options) {
  if (!options.key_by_key)
    return refused("ERR MGET would not read all keys in one step: GET them, or start the gateway with --key-by-key");
  Plan plan{.edits = {}, .join = Plan::Join::list, .answer = {}};
  for (const std::string_view name : a.subspan(1)) plan.edits.push_back(read(name));
  return plan;
}

// Writing.

struct SetOptions {
  bool only_new = false, only_old = false, tell_old = false;
};

Plan set(Arguments a, const PlanOptions&) {
  SetOptions how;
  for (const std::string_view word : a.subspan(3)) {
    if (same_word(word, "NX"))
      how.only_new = true;
    else if (same_word(word, "XX"))
      how.only_old = true;
    else if (same_word(word, "GET"))
      how.tell_old = true;
    else if (same_word(word, "EX") || same_word(word, "PX") || same_word(word, "EXAT") || same_word(word, "PXAT"))
      return refused("ERR keys do not expire in this store");
    else if (!same_word(word, "KEEPTTL"))
      return refused(kSyntax);
  }
  if (how.only_new && how.only_old) return refused(kSyntax);
  if (!how.only_new && !how.only_old && !how.tell_old) return one(write(a[1], a[2]));
  return one(change(a[1], [how, value = std::string(a[2])](Text old) {
    const bool writes = old ? !how.only_new : !how.only_old;
    Answer answer = how.tell_old ? text_or_null(old) : writes ? Answer::ok() : Answer::null();
    return Change{writes ? What::write : What::leave, value, std::move(answer)};
  }));
}

Plan setnx(Arguments a, const PlanOptions&) {
  return one(change(a[1], [value = std::string(a[2])](Text old) {
    return Change{old ? What::leave : What::write, value, Answer::number(old ? 0 : 1)};
  }));
}

Plan getset(Arguments a, const PlanOptions&) {
  return one(
      change(a[1], [value = std::string(a[2])](Text old) { return Change{What::write, value, text_or_null(old)}; }));
}

Plan getdel(Arguments a, const PlanOptions&) {
  return one(change(a[1], [](Text old) { return Change{old ? What::remove : What::leave, {}, text_or_null(old)}; }));
}

Plan del(Arguments a, const PlanOptions&) {
  Plan plan{.edits = {}, .join = Plan::Join::sum, .answer = {}};
  for (std::size_t i = 1; i < a.size(); ++i) {
    if (std::ranges::find(a.subspan(1, i - 1), a[i]) != a.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    plan.edits.push_back(change(
        a[i], [](Text old) { return Change{old ? What::remove : What::leave, {}, Answer::number(old ? 1 : 0)}; }));
  }
  return plan;
}

Plan append(Arguments a, const PlanOptions&) {
  return one(change(a[1], [more = std::string(a[2])](Text old) {
    std::string text = std::string(old.value_or(std::string_view())) + more;
    const auto size = static_cast<std::int64_t>(text.size());
    return Change{What::write, std::move(text), Answer::number(size)};
  }));
}

Plan setrange(Arguments a, const PlanOptions&) {
  constexpr std::int64_t kMost = std::int64_t{1} << 29;  // Redis' own limit of a string: 512 MB
  const auto offset = number_in(a[2]);
  if (!offset) return refused(kNotANumber);
  if (*offset < 0) return refused("ERR offset is out of range");
  if (*offset > kMost) return refused(kTooLong);
  return one(change(a[1], [at = static_cast<std::size_t>(*offset), piece = std::string(a[3])](Text old) {
    std::string text(old.value_or(std::string_view()));
    if (piece.empty()) return Change{What::leave, {}, Answer::number(static_cast<std::int64_t>(text.size()))};
    if (at + piece.size() > kRoomBytes) return Change{What::leave, {}, Answer::error(kTooLong)};
    if (text.size() < at + piece.size()) text.resize(at + piece.size());
    text.replace(at, piece.size(), piece);
    const auto size = static_cast<std::int64_t>(text.size());
    return Change{What::write, std::move(text), Answer::number(size)};
  }));
}

Plan add(std::string_view name, std::int64_t step) {
  return one(change(name, [step](Text old) {
    const auto value = old ? number_in(*old) : std::optional<std::int64_t>(0);
    if (!value) return Change{What::leave, {}, Answer::error(kNotANumber)};
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*value, step, &sum))
      return Change{What::leave, {}, Answer::error("ERR increment or decrement would overflow")};
    return Change{What::write, fmt::format("{}", sum), Answer::number(sum)};
  }));
}

Plan incr(Arguments a, const PlanOptions&) { return add(a[1], 1); }
Plan decr(Arguments a, const PlanOptions&) { return add(a[1], -1); }
Plan incrby(Arguments a, const PlanOptions&) {
  const auto step = number_in(a[2]);
  return step ? add(a[1], *step) : refused(kNotANumber);
}
Plan decrby(Arguments a, const PlanOptions&) {
  const auto step = number_in(a[2]);
  if (!step) return refused(kNotANumber);
  if (*step == std::numeric_limits<std::int64_t>::min()) return refused("ERR decrement would overflow");
  return add(a[1], -*step);
}

Plan mset(Arguments a, const PlanOptions& options) {
  if (a.size() % 2 == 0) return refused("ERR wrong number of arguments for 'mset' command");
  if (!options.key_by_key)
    return refused("ERR MSET would not write all keys in one step: SET them, or start the gateway with --key-by-key");
  Plan plan{.edits = {}, .join = Plan::Join::ok, .answer = {}};
  for (std::size_t i = 1; i < a.size(); i += 2) {
    bool again = false;  // of one name the last text counts
    for (std::size_t j = i + 2; j < a.size(); j += 2) again = again || a[j] == a[i];
    if (!again) plan.edits.push_back(write(a[i], a[i + 1]));
  }
  return plan;
}

// About the server.

Plan ping(Arguments a, const PlanOptions&) {
  return at_once(a.size() > 1 ? Answer::text(a[1]) : Answer::simple("PONG"));
}
Plan echo(Arguments a, const PlanOptions&) { return at_once(Answer::text(a[1])); }

Plan time_of_day(Arguments, const PlanOptions&) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  constexpr std::int64_t kMillion = 1'000'000;
  return at_once(Answer::list({Answer::text(fmt::format("{}", microseconds / kMillion)),
                               Answer::text(fmt::format("{}", microseconds % kMillion))}));
}

Plan info(Arguments, const PlanOptions&) {
  return at_once(Answer::text(
      fmt::format("# Server\r\nserver_name:wherry-kv\r\nwherry_version:{}\r\nredis_mode:standalone\r\n# Replication\r\n"
                  "role:master\r\n",
                  kVersion)));
}

/// redis-benchmark asks for these two settings. Clients do not ask for others.
Plan config(Arguments a, const PlanOptions&) {
  if (!same_word(a[1], "GET")) return refused("ERR the gateway's settings are those of its command line");
  std::vector<Answer> known;
  for (const std::string_view name : a.subspan(2)) {
    if (!same_word(name, "save") && !same_word(name, "appendonly")) continue;
    known.push_back(Answer::text(name));
    known.push_back(Answer::text(same_word(name, "save") ? "" : "no"));
  }
  return at_once(Answer::map(std::move(known)));
}

Plan command_list(Arguments a, const PlanOptions& options);

struct Command {
  std::string_view name;
  int arity;  ///< with the name; negative: at least
  bool writes;
  int first, last, step;  ///< which arguments are keys, as Redis' COMMAND tells it
  Plan (*plan)(Arguments, const PlanOptions&);
};

constexpr std::array kCommands = {
    Command{"append", 3, true, 1, 1, 1, append},
    Command{"command", -1, false, 0, 0, 0, command_list},
    Command{"config", -3, false, 0, 0, 0, config},
    Command{"decr", 2, true, 1, 1, 1, decr},
    Command{"decrby", 3, true, 1, 1, 1, decrby},
    Command{"del", -2, true, 1, -1, 1, del},
    Command{"echo", 2, false, 0, 0, 0, echo},
    Command{"exists", -2, false, 1, -1, 1, exists},
    Command{"expiretime", 2, false, 1, 1, 1, time_to_live},
    Command{"get", 2, false, 1, 1, 1, get},
    Command{"getdel", 2, true, 1, 1, 1, getdel},
    Command{"getex", -2, true, 1, 1, 1, getex},
    Command{"getrange", 4, false, 1, 1, 1, getrange},
    Command{"getset", 3, true, 1, 1, 1, getset},
    Command{"incr", 2, true, 1, 1, 1, incr},
    Command{"incrby", 3, true, 1, 1, 1, incrby},
    Command{"info", -1, false, 0, 0, 0, info},
    Command{"mget", -2, false, 1, -1, 1, mget},
    Command{"mset", -3, true, 1, -1, 2, mset},
    Command{"persist", 2, true, 1, 1, 1, persist},
    Command{"pexpiretime", 2, false, 1, 1, 1, time_to_live},
    Command{"ping", -1, false, 0, 0, 0, ping},
    Command{"pttl", 2, false, 1, 1, 1, time_to_live},
    Command{"set", -3, true, 1, 1, 1, set},
    Command{"setnx", 3, true, 1, 1, 1, setnx},
    Command{"setrange", 4, true, 1, 1, 1, setrange},
    Command{"strlen", 2, false, 1, 1, 1, strlen_of},
    Command{"substr", 4, false, 1, 1, 1, getrange},
    Command{"time", 1, false, 0, 0, 0, time_of_day},
    Command{"touch", -2, false, 1, -1, 1, exists},
    Command{"ttl", 2, false, 1, 1, 1, time_to_live},
    Command{"type", 2, false, 1, 1, 1, type},
    Command{"unlink", -2, true, 1, -1, 1, del},
};

const Command* find_command(std::string_view name) {
  const auto* const found = std::ranges::find_if(kCommands, [&](const Command& c) { return same_word(c.name, name); });
  return found == kCommands.end() ? nullptr : found;
}

Answer described(const Command& c) {
  return Answer::list({Answer::text(c.name), Answer::number(c.arity),
                       Answer::list({Answer::simple(c.writes ? "write" : "readonly")}), Answer::number(c.first),
                       Answer::number(c.last), Answer::number(c.step)});
}

Plan command_list(Arguments a, const PlanOptions&) {
  if (a.size() > 1 && same_word(a[1], "COUNT")) return at_once(Answer::number(kCommands.size()));
  if (a.size() > 1 && same_word(a[1], "DOCS")) return at_once(Answer::map({}));
  std::vector<Answer> list;
  if (a.size() > 1 && same_word(a[1], "INFO") && a.size() > 2) {
    for (const std::string_view name : a.subspan(2)) {
      const Command* const found = find_command(name);
      list.push_back(found == nullptr ? Answer::null() : described(*found));
    }
    return at_once(Answer::list(std::move(list)));
  }
  if (a.size() > 1 && !same_word(a[1], "INFO")) return refused("ERR of COMMAND there are COUNT, DOCS and INFO here");
  for (const Command& c : kCommands) list.push_back(described(c));
  return at_once(Answer::list(std::move(list)));
}

struct Refusal {
  std::string_view name, why;
};

constexpr std::string_view kExpires = "keys do not expire in this store";
constexpr std::string_view kLists =
    "the store cannot list its keys to a client: `wherry kv dump` writes them to a file";
constexpr std::string_view kOneStep = "the store changes one key in one step, not several";
constexpr std::string_view kAll =
    "the gateway does not delete all keys: `wherry kv down` ends the cluster, and its data";
constexpr std::array kRefusals = {
    Refusal{"dbsize", kLists},     Refusal{"discard", kOneStep},   Refusal{"eval", kOneStep},
    Refusal{"evalsha", kOneStep},  Refusal{"exec", kOneStep},      Refusal{"expire", kExpires},
    Refusal{"expireat", kExpires}, Refusal{"flushall", kAll},      Refusal{"flushdb", kAll},
    Refusal{"keys", kLists},       Refusal{"msetnx", kOneStep},    Refusal{"multi", kOneStep},
    Refusal{"pexpire", kExpires},  Refusal{"pexpireat", kExpires}, Refusal{"psetex", kExpires},
    Refusal{"randomkey", kLists},  Refusal{"rename", kOneStep},    Refusal{"renamenx", kOneStep},
    Refusal{"scan", kLists},       Refusal{"setex", kExpires},     Refusal{"watch", kOneStep},
};

}  // namespace

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

Plan plan(Arguments arguments, const PlanOptions& options) {
  constexpr std::size_t kQuoted = 64;
  const std::string_view name = arguments.front();
  const Command* const command = find_command(name);
  if (command == nullptr) {
    const auto* const known =
        std::ranges::find_if(kRefusals, [&](const Refusal& r) { return same_word(r.name, name); });
    if (known != kRefusals.end()) return refused(fmt::format("ERR '{}': {}", known->name, known->why));
    return refused(fmt::format("ERR unknown command '{}', or one of a type that is not here: this store keeps strings",
                               name.substr(0, kQuoted)));
  }
  const auto count = static_cast<int>(arguments.size());
  if (command->arity >= 0 ? count != command->arity : count < -command->arity)
    return refused(fmt::format("ERR wrong number of arguments for '{}' command", command->name));
  return command->plan(arguments, options);
}

Answer join(Plan::Join how, std::vector<Answer> answers) {
  for (Answer& answer : answers)
    if (answer.kind == Answer::Kind::error) return std::move(answer);
  switch (how) {
    case Plan::Join::one:
      return std::move(answers.front());
    case Plan::Join::list:
      return Answer::list(std::move(answers));
    case Plan::Join::ok:
      return Answer::ok();
    case Plan::Join::sum:
      break;
  }
  std::int64_t sum = 0;
  for (const Answer& answer : answers) sum += answer.value;
  return Answer::number(sum);
}

}  // namespace wherry::kv::resp
