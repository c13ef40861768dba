// SPDX-License-Identifier: Apache-2.0
#include "pci/binding.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <cerrno>
#include <system_error>

#include "base/try.hpp"

namespace wherry::pci {
namespace {

constexpr std::string_view kVfio = "vfio-pci";

}  // namespace

std::string Binding::file(BusAddress at, const std::string& name) const {
  return fmt::format("{}/bus/pci/devices/{}/{}", sysfs_, at.text(), name);
}

std::string Binding::driver_of(BusAddress at) const { return kernel_->link_name(file(at, "driver")); }

Status Binding::write(const std::string& path, const std::string& text) const {
  const int fd = kernel_->open(path, O_WRONLY);
  ssize_t done = fd;
  if (fd >= 0) {
    done = kernel_->write_at(fd, text.data(), text.size(), 0);
    kernel_->close(fd);
  }
  if (done >= 0) return {};
  const StatusCode code = done == -EACCES || done == -EPERM ? StatusCode::kPermissionDenied
                          : done == -ENOENT                 ? StatusCode::kNotFound
                                                            : StatusCode::kUnavailable;
  return {code, fmt::format("{}: {}{}", path, std::generic_category().message(static_cast<int>(-done)),
                            code == StatusCode::kPermissionDenied ? ": this takes root" : "")};
}

Status Binding::take(const Lent& lent) const {
  const BusAddress at = lent.at;
  if (driver_of(at) == kVfio) return {};
  const auto attempt = [&]() -> Status {
    WHERRY_TRY(write(file(at, "driver_override"), std::string(kVfio)));
    if (!lent.driver.empty()) WHERRY_TRY(write(file(at, "driver/unbind"), at.text()));
    WHERRY_TRY(write(sysfs_ + "/bus/pci/drivers_probe", at.text()));
    if (driver_of(at) != kVfio)
      return {StatusCode::kNotFound,
              fmt::format("vfio-pci did not take {}: load it with `modprobe vfio-pci`, and see `dmesg`", at.text())};
    return {};
  };
  Status taken = attempt();
  if (!taken) (void)give_back(lent);  // the first failure is the one to tell
  return taken;
}

Status Binding::give_back(const Lent& lent) const {
  const BusAddress at = lent.at;
  if (lent.driver == kVfio) return {};
  if (driver_of(at) == kVfio) WHERRY_TRY(write(file(at, "driver/unbind"), at.text()));
  // An empty line ends the override.
  WHERRY_TRY(write(file(at, "driver_override"), "\n"));
  if (lent.driver.empty() || driver_of(at) == lent.driver) return {};
  WHERRY_TRY(write(sysfs_ + "/bus/pci/drivers_probe", at.text()));
  if (const std::string now = driver_of(at); now != lent.driver)
    return {
        StatusCode::kUnavailable,
        fmt::format("{} had driver {} and now has {}: `modprobe {}`, or echo {} > {}/bus/pci/drivers/{}/bind",
                    at.text(), lent.driver, now.empty() ? "none" : now, lent.driver, at.text(), sysfs_, lent.driver)};
  return {};
}

}  // namespace wherry::pci
