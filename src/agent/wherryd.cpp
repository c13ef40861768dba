// SPDX-License-Identifier: Apache-2.0
// wherryd: the agent as a program.
#include <fcntl.h>
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "base/command_line.hpp"
#include "base/descriptors.hpp"
#include "base/fd.hpp"
#include "base/free_memory.hpp"
#include "base/log.hpp"
#include "base/program.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "session/session_file.hpp"

namespace {

/// The original standard error, saved before it becomes the log. The process that starts the agent reads there why the
/// start failed.
wherry::Fd first_stderr;

int fail(const wherry::Status& status) {
  if (first_stderr) dprintf(first_stderr.get(), "wherryd: %s\n", status.message().c_str());
  return wherry::exit_status("wherryd", status);
}

/// The budget is a limit: memory is allocated when frames need it. So a budget that is too large fails only later.
void check_budget(std::uint64_t budget) {
  const wherry::FreeMemory free = wherry::free_memory("");
  if (budget <= free.bytes) return;
  constexpr double kGiB = 1U << 30;
  const std::string text = fmt::format(
      "agent.budget is {:.1f} GiB, and {} has {:.1f} GiB left: when frames have filled that, the kernel ends a process",
      static_cast<double>(budget) / kGiB, free.where, static_cast<double>(free.bytes) / kGiB);
  spdlog::warn("{}", text);
  if (first_stderr) dprintf(first_stderr.get(), "wherryd: warning: %s\n", text.c_str());
}

/// Logs the settings that come from the profile.
void say(const wherry::FromProfile& profile, const wherry::Settings& table) {
  for (const std::string& warning : profile.warnings) spdlog::warn("{}", warning);
  if (profile.file.empty()) return;
  std::string lines = wherry::profile_comments(profile, table);
  lines.pop_back();  // the last end of a line
  spdlog::info("{}", lines);
}

/// Checks that the agent and its libraries can start threads. Without a thread, some libraries end or hang the process.
wherry::Status check_threads() {
  constexpr int kNeeded = 32;
  std::vector<std::thread> threads;
  std::mutex all;
  std::unique_lock held(all);
  std::string why;
  try {
    for (int i = 0; i < kNeeded; ++i) threads.emplace_back([&] { const std::lock_guard until_all_run(all); });
  } catch (const std::system_error& error) {
    why = error.what();
  }
  held.unlock();
  for (std::thread& thread : threads) thread.join();
  if (why.empty()) return wherry::ok_status();
  return {wherry::StatusCode::kResourceExhausted,
          fmt::format("cannot start {} threads, thread {} failed: {}; raise the limits on processes (ulimit -u), "
                      "address space (ulimit -v) or tasks of the control group",
                      kNeeded, threads.size() + 1, why)};
}

}  // namespace

int main(int argc, char** argv) {
  wherry::keep_owners_rights();
  CLI::App app{
      "wherryd, the Wherry agent: pulls data out of the memory of applications, places it as Apache Arrow and serves "
      "it.\n"
      "Runs on a SmartNIC's cores, or on a spare core of the host.\n\n"
      "  wherryd --budget 4GiB --core 3                     an agent for the clients of this user on this machine\n"
      "  wherryd --listen 192.0.2.7:4100 --transport rdma   on a DPU, for its host\n"
      "  wherryd --config wherryd.toml --dump-config        what the settings resolve to\n\n"
      "Settings come from, each overriding the one before: defaults, the profile of `wherry probe profile`, --config, "
      "WHERRY_* variables, flags.",
      "wherryd"};
  std::string config_file;
  bool dump = false;
  bool embedded = false;
  bool version = false;
  std::string log_file;
  app.add_option("--config", config_file, "TOML file");
  app.add_flag("--dump-config", dump, "print the resolved settings as TOML and exit");
  app.add_flag("--embedded", embedded, "end when standard input closes (used by the client library)");
  app.add_option("--default-log-file", log_file, "log file unless the settings name one (used by wherry agent start)");
  app.add_flag("--version", version, "print the version and exit");
  wherry::AgentConfig config;
  wherry::Services services = wherry::make_services();
  const wherry::Settings table = wherry::settings(config, services);
  std::map<std::string, std::string> flags;
  for (const auto& setting : table) {
    app.add_option(
           setting.flag(), flags[setting.key],
           fmt::format("{} [{}; ${}; default {}]", setting.help, setting.key, setting.environment(), setting.get()))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  wherry::parse_command_line(app, argc, argv);
  if (version) {
    fmt::print("wherry {}\n", wherry::kVersion);
    return 0;
  }

  // The user's settings are read twice: they name the profile, and they also override it.
  const auto persons = [&]() -> wherry::Status {
    if (!config_file.empty()) WHERRY_TRY(wherry::load_toml(config_file, table));
    WHERRY_TRY(wherry::load_environment(environ, table));
    for (const auto& setting : table)
      if (app.count(setting.flag()) != 0) WHERRY_TRY(setting.set(flags[setting.key]));
    return wherry::ok_status();
  };
  const auto good = [&]() -> wherry::Status {
    WHERRY_TRY(wherry::check(config));
    return wherry::check(services);
  };
  std::vector<std::string> defaults;
  for (const auto& setting : table) defaults.push_back(setting.get());
  if (auto s = persons(); !s) return fail(s);
  auto profile = wherry::use_profile(config.profile, table);
  if (!profile) return fail(profile.status());
  if (auto s = persons(); !s) return fail(s);
  if (!profile->settings.empty() && !good()) {  // together with a person's
    for (std::size_t i = 0; i < table.size(); ++i) (void)table[i].set(defaults[i]);
    if (auto s = persons(); !s) return fail(s);
    profile->warnings.push_back(fmt::format("'{}' cannot be used: it contradicts other settings", profile->file));
    profile->file.clear();
  }
  if (auto s = good(); !s) return fail(s);
  if (dump) {
    fmt::print("{}{}", wherry::dump_toml(table), wherry::profile_comments(*profile, table));
    return 0;
  }
  if (config.session_file.empty()) config.session_file = wherry::default_session_file();
  // Create the directory of the session file now, because the log may lie in it.
  if (auto s = wherry::session_directory(config.session_file, config.group); !s) return fail(s.status());
  if (config.log_file.empty()) config.log_file = log_file;
  if (!config.log_file.empty()) first_stderr = wherry::Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (auto s = wherry::init_log(config.log_level, config.log_file); !s) return fail(s);
  say(*profile, table);
  check_budget(config.budget);

  // A session takes a few descriptors, and there may be many sessions. The soft limit is only a default.
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < descriptors.rlim_max) {
    descriptors.rlim_cur = descriptors.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &descriptors);
  }

  // An agent without clients uses up to 40 descriptors. Its libraries end the process if they cannot get one at start.
  constexpr std::size_t kDescriptors = 64;
  if (auto s = wherry::check_descriptors("the agent", kDescriptors); !s) return fail(s);
  if (auto s = check_threads(); !s) return fail(s);

  const std::atomic<bool>& stop = wherry::stop_on_signals();

  wherry::Result<std::unique_ptr<wherry::Agent>> agent =
      wherry::Status(wherry::StatusCode::kInternal, "the agent did not start");
  try {
    agent = wherry::Agent::create(config, std::move(services));
  } catch (const std::exception& error) {
    agent = wherry::Status(wherry::StatusCode::kResourceExhausted, fmt::format("cannot start: {}", error.what()));
  }
  if (!agent) return fail(agent.status());
  if (auto s = (*agent)->run(stop, embedded); !s) return fail(s);
  const std::string session_file = (*agent)->session_file();
  const wherry::Status closed = (*agent)->close();
  agent->reset();
  if (embedded) wherry::remove_embedded_directory(session_file);
  if (!closed) _exit(0);  // a thread still uses what the end of main() would take down
  return 0;
}
