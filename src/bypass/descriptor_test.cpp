// SPDX-License-Identifier: Apache-2.0
// Golden descriptors. The bytes come from the structs and constants of the drivers' headers (DPDK 26.11-rc0,
// drivers/net/intel), not from the table. A comment beside each byte names its field.
#include "bypass/descriptor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace wherry::bypass {
namespace {

using Bytes = std::array<std::byte, kDescriptorBytes>;

constexpr Bytes bytes(std::initializer_list<int> values) {
  Bytes out{};
  std::transform(values.begin(), values.end(), out.begin(), [](int value) { return static_cast<std::byte>(value); });
  return out;
}
const Personality& nic(std::string_view name) { return *find_personality(name); }
Bytes stored(const Descriptor& descriptor) {
  Bytes out{};
  store(descriptor, out);
  return out;
}

// A frame of 300 bytes (0x12C) at 0x1'2345'6780, in one buffer, with EOP and FCS insertion; RS if the name says so.
struct TxGolden {
  const char* name;
  Bytes plain, with_report;
};
const TxGolden kTx[] = {
    // e1000_data_desc: buffer_addr; lower.flags: length 16, typ_len_ext (DTYP_D 0x1 << 4), cmd (EOP 1, IFCS 2, RS 8,
    // DEXT 0x20); upper.fields: status, popts, special.
    {"e1000e", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x10, 0x23, 0, 0, 0, 0}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x10, 0x2B, 0, 0, 0, 0})},
    // e1000_adv_tx_desc: buffer_addr; cmd_type_len: DTALEN 15:0, ADVTXD_DTYP_DATA 0x00300000, DCMD; olinfo_status:
    // PAYLEN from bit 14 on: 300 << 14 = 0x004B0000.
    {"i210", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x30, 0x23, 0x00, 0x00, 0x4B, 0x00}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x30, 0x2B, 0x00, 0x00, 0x4B, 0x00})},
    // ixgbe_adv_tx_desc: the same fields under other names.
    {"ixgbe", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x30, 0x23, 0x00, 0x00, 0x4B, 0x00}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x2C, 0x01, 0x30, 0x2B, 0x00, 0x00, 0x4B, 0x00})},
    // i40e: DTYPE_DATA 0; CMD from bit 4 on: EOP 1, RS 2, ICRC 4; TX_BUF_SZ from bit 34 on: 300 << 34 = 0x4B0'00000000.
    {"i40e", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x50, 0, 0, 0, 0xB0, 0x04, 0, 0}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x70, 0, 0, 0, 0xB0, 0x04, 0, 0})},
    // ci_tx_desc of common/tx.h, CI_TX_DESC_CMD_DEFAULT (ICRC, EOP).
    {"ice", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x50, 0, 0, 0, 0xB0, 0x04, 0, 0}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x70, 0, 0, 0, 0xB0, 0x04, 0, 0})},
    {"iavf", bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x50, 0, 0, 0, 0xB0, 0x04, 0, 0}),
     bytes({0x80, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0x70, 0, 0, 0, 0xB0, 0x04, 0, 0})},
};

/// Personalities whose drivers use the same struct.
struct Same {
  const char* format;
  std::vector<std::string_view> names;
};
const Same kSameTx[] = {{"e1000e", {"e1000e"}},
                        {"i210", {"i210", "igb", "igbvf", "igc"}},
                        {"ixgbe", {"ixgbe", "x550", "ixgbevf"}},
                        {"i40e", {"i40e"}},
                        {"ice", {"ice", "iavf_flex"}},
                        {"iavf", {"iavf"}}};
const Same kSameRx[] = {{"e1000e", {"e1000e"}},
                        {"igb", {"igb", "i210", "igbvf", "igc"}},
                        {"ixgbe", {"ixgbe", "x550", "ixgbevf"}},
                        {"i40e", {"i40e"}},
                        {"iavf", {"iavf"}},
                        {"ice", {"ice"}},
                        {"iavf_flex", {"iavf_flex"}}};
std::vector<std::string_view> users_of(std::span<const Same> table, std::string_view format) {
  for (const Same& same : table) {
    if (same.format == format) return same.names;
  }
  return {};
}

TEST(BypassDescriptor, MakeTransmitDescriptor_ExpectBytesOfDriverHeaders) {
  std::size_t covered = 0;
  for (const TxGolden& golden : kTx) {
    for (const std::string_view name : users_of(kSameTx, golden.name)) {
      SCOPED_TRACE(std::string(name));
      ++covered;
      TxPart part{.address = 0x123456780, .bytes = 300, .total = 300, .end = true};
      EXPECT_EQ(stored(make_tx(nic(name), part)), golden.plain);
      part.report = true;
      EXPECT_EQ(stored(make_tx(nic(name), part)), golden.with_report);
    }
  }
  EXPECT_EQ(covered, kPersonalities.size());
}

TEST(BypassDescriptor, ReadTransmitDescriptor_ExpectWhatTheDriverMeant) {
  for (const TxGolden& golden : kTx) {
    SCOPED_TRACE(golden.name);
    const TxPart part = read_tx(nic(golden.name), load(golden.with_report));
    EXPECT_EQ(part.address, 0x123456780);
    EXPECT_EQ(part.bytes, 300);
    EXPECT_TRUE(part.end && part.report);
    EXPECT_EQ(part.kind, TxKind::kData);
    EXPECT_FALSE(read_tx(nic(golden.name), load(golden.plain)).report);
    EXPECT_FALSE(tx_done(nic(golden.name), load(golden.with_report)));
  }
}

TEST(BypassDescriptor, ReadContextDescriptor_ExpectContext) {
  // In order: TXD_DTYP_C with DEXT; ADVTXD_DTYP_CTXT with DEXT; DTYPE_CONTEXT.
  EXPECT_EQ(read_tx(nic("e1000e"), {0, 0x20000000}).kind, TxKind::kContext);
  EXPECT_EQ(read_tx(nic("igb"), {0, 0x20200000}).kind, TxKind::kContext);
  EXPECT_EQ(read_tx(nic("ixgbe"), {0, 0x20200000}).kind, TxKind::kContext);
  EXPECT_EQ(read_tx(nic("i40e"), {0, 0x1}).kind, TxKind::kContext);
  EXPECT_EQ(read_tx(nic("ice"), {0, 0x1}).kind, TxKind::kContext);
  EXPECT_EQ(read_tx(nic("i40e"), {0, 0x8}).kind, TxKind::kOther);  // FILTER_PROG
}

TEST(BypassDescriptor, ReadTransmitWriteback_ExpectDone) {
  // In order: STAT_DD in the status byte (byte 12); wb.status bit 0 (byte 12); DTYPE_DESC_DONE 0xF (byte 8).
  const Bytes dd = bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  const Bytes dtype = bytes({0, 0, 0, 0, 0, 0, 0, 0, 0x0F, 0, 0, 0, 0, 0, 0, 0});
  for (const char* name : {"e1000e", "i210", "igb", "igc", "ixgbe", "x550", "ixgbevf"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(tx_done(nic(name), load(dd)));
    EXPECT_FALSE(tx_done(nic(name), load(dtype)));
    EXPECT_EQ(stored(make_tx_done(nic(name))), dd);
  }
  for (const char* name : {"i40e", "ice", "iavf", "iavf_flex"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(tx_done(nic(name), load(dtype)));
    EXPECT_FALSE(tx_done(nic(name), load(dd)));
    EXPECT_EQ(stored(make_tx_done(nic(name))), dtype);
  }
}

// A NIC's report for the last 1514 bytes (0x5EA) of a frame, with hash, packet type and tag as from a real NIC.
struct RxGolden {
  const char* name;
  Bytes whole, part;  ///< with and without EOP
};
const RxGolden kRx[] = {
    // e1000_rx_desc_extended.wb: mrq, rss; status_error, length, vlan.
    {"e1000e", bytes({1, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x03, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12}),
     bytes({1, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x01, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12})},
    // e1000_adv_rx_desc.wb: pkt_info, hdr_info, rss; status_error, length, vlan.
    {"igb", bytes({0x21, 0x02, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x03, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12}),
     bytes({0x21, 0x02, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x01, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12})},
    {"ixgbe", bytes({0x21, 0x02, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x63, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12}),
     bytes({0x21, 0x02, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 0x61, 0, 0, 0, 0xEA, 0x05, 0x34, 0x12})},
    // ci_rx_desc.wb: mirr_fcoe, l2tag1, rss; status_error_len: DD, EOF, PTYPE from bit 30 on (24), LENGTH_PBUF from bit
    // 38 on: 1514 << 38 = 0x17A80'00000000 with PTYPE 24 << 30 = 0x6'00000000.
    {"i40e", bytes({0, 0, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE, 0x03, 0, 0, 0, 0x86, 0x7A, 0x01, 0}),
     bytes({0, 0, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE, 0x01, 0, 0, 0, 0x86, 0x7A, 0x01, 0})},
    {"iavf", bytes({0, 0, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE, 0x03, 0, 0, 0, 0x86, 0x7A, 0x01, 0}),
     bytes({0, 0, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE, 0x01, 0, 0, 0, 0x86, 0x7A, 0x01, 0})},
    // ci_rx_flex_desc.wb: rxdid, mir_id, ptype; pkt_len, hdr_len; status_error0, l2tag1, flex_meta0, flex_meta1.
    {"ice", bytes({0x16, 0x40, 0x18, 0, 0xEA, 0x05, 0, 0, 0x03, 0x10, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE}),
     bytes({0x16, 0x40, 0x18, 0, 0xEA, 0x05, 0, 0, 0x01, 0x10, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE})},
    {"iavf_flex", bytes({0x16, 0x40, 0x18, 0, 0xEA, 0x05, 0, 0, 0x03, 0x10, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE}),
     bytes({0x16, 0x40, 0x18, 0, 0xEA, 0x05, 0, 0, 0x01, 0x10, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE})},
};

TEST(BypassDescriptor, ReadReceiveWriteback_ExpectLengthAndEnd) {
  std::size_t covered = 0;
  for (const RxGolden& golden : kRx) {
    for (const std::string_view name : users_of(kSameRx, golden.name)) {
      SCOPED_TRACE(std::string(name));
      ++covered;
      const Descriptor whole = load(golden.whole), part = load(golden.part);
      ASSERT_TRUE(rx_done(nic(name), whole) && rx_done(nic(name), part));
      EXPECT_EQ(read_rx(nic(name), whole).bytes, 1514);
      EXPECT_EQ(read_rx(nic(name), whole).errors, 0);
      EXPECT_TRUE(read_rx(nic(name), whole).end);
      EXPECT_EQ(read_rx(nic(name), part).bytes, 1514);
      EXPECT_FALSE(read_rx(nic(name), part).end);
    }
  }
  EXPECT_EQ(covered, kPersonalities.size());
}

TEST(BypassDescriptor, ReadReceiveWritebackWithMacError_ExpectErrorAndNotWithChecksumError) {
  struct Case {
    const char* name;
    std::uint64_t mac, checksum;  // of the dword at bit 64
  };
  // E1000_RXDEXT_STATERR_CE, TCPE | IPE; IXGBE_RXDADV_ERR_RXE, TCPE | IPE; I40E RXE, IPE | L4E; flex RXE, XSUM_L4E.
  for (const Case& c :
       {Case{"e1000e", 0x01000003, 0x60000003}, Case{"igb", 0x01000003, 0x60000003},
        Case{"ixgbe", 0x20000003, 0xC0000003}, Case{"i40e", 0x00080003, 0x00C00003}, Case{"ice", 0x403, 0x23}}) {
    SCOPED_TRACE(c.name);
    EXPECT_NE(read_rx(nic(c.name), {0, c.mac}).errors, 0U);
    EXPECT_EQ(read_rx(nic(c.name), {0, c.checksum}).errors, 0U);
  }
}

TEST(BypassDescriptor, WriteBackForEveryPersonality_ExpectTheDriverReadsIt) {
  for (const Personality& p : kPersonalities) {
    SCOPED_TRACE(std::string(p.name));
    EXPECT_FALSE(rx_done(p, make_rx(~std::uint64_t{0})));
    for (const std::uint32_t bytes : {1U, 60U, 1514U, 9724U}) {
      const Descriptor done = make_rx_done(p, {.bytes = bytes, .errors = p.rx_error_mask, .end = true});
      ASSERT_TRUE(rx_done(p, done));
      EXPECT_EQ(read_rx(p, done).bytes, bytes);
      EXPECT_EQ(read_rx(p, done).errors, p.rx_error_mask);
      EXPECT_TRUE(read_rx(p, done).end);
    }
  }
}

TEST(BypassDescriptor, DeviceIds_ExpectTheirPersonality) {
  EXPECT_EQ(personality_of(0x8086, 0x10D3)->name, "e1000e");
  EXPECT_EQ(personality_of(0x8086, 0x10C9)->name, "igb");
  EXPECT_EQ(personality_of(0x8086, 0x10FB)->name, "ixgbe");
  EXPECT_EQ(personality_of(0x8086, 0x1889)->name, "iavf");
  EXPECT_EQ(personality_of(0x8086, 0x0001), nullptr);
  EXPECT_EQ(personality_of(0x15B3, 0x10FB), nullptr);
  EXPECT_EQ(find_personality("i40"), nullptr);
}

}  // namespace
}  // namespace wherry::bypass
