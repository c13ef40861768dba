#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest of tools/guest/run.py. Each line "RESULT name value" is one that the tool looks at.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
for module in @MODULES@; do insmod /modules/$module.ko || echo "RESULT insmod $module"; done
nic=0000:03:00.0
card=0000:04:00.0
where="--nic $nic --card $card"

driver() { basename "$(readlink /sys/bus/pci/devices/$nic/driver)"; }
ask() {
  interface=$(ls /sys/bus/pci/devices/$nic/net)
  ip link set "$interface" up
  ip addr add 10.0.2.15/24 dev "$interface" 2>/dev/null
  sleep 4
  ping -c 3 -W 5 10.0.2.2 >/dev/null
  echo "RESULT ping_$1 $?"
}

echo "RESULT kernel $(uname -r)"
echo "RESULT driver_before $(driver)"
wherry-bypass probe $where
echo "RESULT probe $?"
ask before
# With the driver's traffic before, and without: the NIC must come out of any state.
for round in 1 2 3; do
  wherry-bypass probe --move $where
  echo "RESULT move_$round $?"
  echo "RESULT driver_$round $(driver)"
done
ask after
# The card here is plain memory: `up` must move data, refuse it by its register 0, and give everything back.
wherry-bypass up $where
echo "RESULT up $?"
echo "RESULT driver_up $(driver)"
# Killed in the middle, at moments that the guest's speed chooses: `down` must mend what is left.
for tenths in 1 3 6; do
  wherry-bypass probe --move $where >/dev/null 2>&1 &
  process=$!
  usleep ${tenths}00000
  kill -9 $process 2>/dev/null
  wait $process 2>/dev/null
  wherry-bypass down
  echo "RESULT down_$tenths $?"
  echo "RESULT driver_killed_$tenths $(driver)"
done
ask last
echo "RESULT faults $(dmesg | grep -ciE 'DMAR.*fault|BUG:|WARNING:')"
poweroff -f
