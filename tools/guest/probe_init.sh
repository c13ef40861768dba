#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest of tools/guest/probe.py. Lines for the world outside:
#
#     MARK name          a moment
#     RESULT name value  what it found
#     TURN name          what is to be done there meanwhile; it waits for the line "go"
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
stty -echo
echo "MARK boot"
for module in @MODULES@; do insmod /modules/$module.ko || echo "RESULT insmod $module"; done

turn() {
  echo "TURN $1"
  read -r answer
}
check() {
  name=$1
  shift
  wherry-probe-device "$@"
  echo "RESULT $name $?"
}
# The address of the function with this vendor and device.
function_of() {
  for folder in /sys/bus/pci/devices/*; do
    [ "$(cat $folder/vendor) $(cat $folder/device)" = "$1 $2" ] && basename "$folder"
  done
}
edu=$(function_of 0x1234 0x11e8)
shared=$(function_of 0x1af4 0x1110)
echo "RESULT edu $edu"
echo "RESULT shared $shared"

# Memory of a function that is switched off: the path says so, and reads nothing.
export WHERRY_PROBE_IVSHMEM=$shared/2:0x100000+1MiB WHERRY_PROBE_BAR=$shared/2:0x200000+1MiB
echo 0 >/sys/bus/pci/devices/$shared/enable 2>/dev/null
printf '\000' | dd of=/sys/bus/pci/devices/$shared/config bs=1 seek=4 conv=notrunc 2>/dev/null
check switched_off run mmio

# Their memory on; edu masters the bus, too.
for function in $edu $shared; do
  echo 1 >/sys/bus/pci/devices/$function/enable
  printf '\006' | dd of=/sys/bus/pci/devices/$function/config bs=1 seek=4 conv=notrunc 2>/dev/null
done
check pci run pci mmio
check edu run edu

# A file of the world outside is this function's memory.
check filled fill $shared/2:0x0+64KiB 7
turn filled
check compared compare $shared/2:0x0+64KiB 8
turn flip
check flipped compare $shared/2:0x0+64KiB 8

# Soft-RoCE on a device that leads nowhere: what is sent to its own address comes back.
ip link add v0 type dummy
ip addr add 10.9.0.1/24 dev v0
ip link set v0 mtu 4200 up
rdma link add rxe0 type rxe netdev v0
echo "RESULT rxe $?"
check verbs run verbs
echo "RESULT faults $(dmesg | grep -ciE 'BUG:|WARNING:|Oops')"
echo "RESULT end 0"
poweroff -f
