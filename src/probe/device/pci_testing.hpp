// SPDX-License-Identifier: Apache-2.0
// For tests: files like those that /sys has for a PCI function.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.hpp"
#include "probe/device/settings.hpp"

namespace wherry::probe::testing_support {

inline constexpr const char* kFunction = "0000:04:00.0";

class PciFiles {
 public:
  explicit PciFiles(unsigned vendor = 0x10EE, unsigned device = 0x9038) {
    auto made = TemporaryDirectory::create("probe-pci");
    EXPECT_TRUE(made);
    if (made) directory_ = *std::move(made);
    std::filesystem::create_directories(folder());
    std::string header(256, '\0');  // pci_regs.h: vendor, device, command, status, revision, class
    const unsigned char begin[] = {static_cast<unsigned char>(vendor),
                                   static_cast<unsigned char>(vendor >> 8),
                                   static_cast<unsigned char>(device),
                                   static_cast<unsigned char>(device >> 8),
                                   0x06,
                                   0x04,
                                   0x10,
                                   0x00,
                                   0x01,
                                   0x00,
                                   0x80,
                                   0x05};
    header.replace(0, sizeof begin, reinterpret_cast<const char*>(begin), sizeof begin);
    for (std::size_t i = sizeof begin; i < header.size(); ++i) header[i] = static_cast<char>(i * 7);
    write("config", header);
    write("vendor", hexadecimal(vendor));
    write("device", hexadecimal(device));
    write("revision", "0x01\n");
    write("class", "0x058000\n");
    write("current_link_speed", "8.0 GT/s PCIe\n");
    write("current_link_width", "16\n");
  }
  [[nodiscard]] std::string sysfs() const { return directory_.path(); }
  [[nodiscard]] std::string folder() const { return sysfs() + "/bus/pci/devices/" + kFunction; }
  [[nodiscard]] std::string file(const std::string& name) const { return folder() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  void write_bytes(const std::string& name, std::size_t bytes) const {
    write(name, "");
    std::filesystem::resize_file(file(name), bytes);
  }
  /// Flips bits of one byte in a file, like a fault of the device.
  void flip(const std::string& name, std::size_t at, unsigned bits = 0x10) const {
    std::fstream stream(file(name), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const int byte = stream.get();
    ASSERT_NE(byte, EOF);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ static_cast<int>(bits)));
  }

 private:
  static std::string hexadecimal(unsigned value) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%04x\n", value);
    return text;
  }
  TemporaryDirectory directory_;
};

}  // namespace wherry::probe::testing_support
