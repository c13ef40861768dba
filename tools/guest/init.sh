#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of the guest of tools/guest/run.py. What it says to the world outside: sim/qemu/guest_run.hpp.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
stty -echo
for module in @MODULES@; do insmod /modules/$module.ko || echo "RESULT insmod $module"; done
nic=0000:03:00.0
card=0000:04:00.0
where="--nic $nic --card $card"

driver() { basename "$(readlink /sys/bus/pci/devices/$1/driver)"; }
drivers() {
  echo "RESULT driver_$1 $(driver $nic)"
  echo "RESULT card_$1 $(driver $card)"
}
# The world outside does something meanwhile.
turn() {
  echo "TURN $1"
  read -r answer
}
# The kernel's driver passes traffic.
ask() {
  interface=$(ls /sys/bus/pci/devices/$nic/net)
  ip link set "$interface" up
  ip addr add 10.0.2.15/24 dev "$interface" 2>/dev/null
  for attempt in $(seq 60); do
    [ "$(cat /sys/class/net/$interface/carrier 2>/dev/null)" = 1 ] && break
    usleep 500000
  done
  ping -c 3 -W 60 10.0.2.2
  echo "RESULT ping_$1 $?"
}
# Until the card drives the NIC, or the program has given up.
up() {
  name=$1
  shift
  : >/run/up.log
  echo "MARK ${name}_begin"
  wherry-bypass up $where "$@" >/run/up.log 2>&1 &
  process=$!
  until grep -q "may be stopped" /run/up.log || ! kill -0 $process 2>/dev/null; do usleep 50000; done
  echo "MARK ${name}_end"
  cat /run/up.log
  grep -q "may be stopped" /run/up.log
  echo "RESULT ${name} $?"
}
# The program's state, and the time that it has had, in ticks.
state() { sed 's/.*) //' /proc/$process/stat | cut -d' ' -f1; }
ticks() { sed 's/.*) //' /proc/$process/stat | awk '{print $12 + $13}'; }
counter() { wherry-bypass status | awk -v name="$1" '$1 == name {print $2}'; }
down() {
  wherry-bypass down
  echo "RESULT $1 $?"
  wait $process
  drivers "$1"
}

echo "MARK boot"
echo "RESULT card $card"
turn attach
echo "RESULT kernel $(uname -r)"
drivers before
wherry-bypass probe $where
echo "RESULT probe $?"
ask before
wherry-bypass probe --move $where
echo "RESULT move $?"
drivers move

# Frames are answered by the card; the program does nothing, and is stopped.
up up
wherry-bypass status --nic $nic
echo "RESULT status $?"
turn echo_running
kill -STOP $process
before=$(ticks)
turn echo_stopped
echo "RESULT stopped_state $(state)"
echo "RESULT stopped_ticks $(($(ticks) - before))"
kill -CONT $process
turn echo_continued
echo "RESULT rx_frames $(counter rx_frames)"
echo "RESULT tx_done $(counter tx_done)"
echo "RESULT tx_written_back $(counter tx_written_back)"
down down
ask down
turn release

# Killed with frames in the card.
up up_in_place --in-place
turn echo_in_place
turn hold
kill -9 $process
wait $process 2>/dev/null
drivers killed
turn let_go
process=
down down_killed
ask killed

# Killed, and up again without a `down`.
up up_to_kill
kill -9 $process
wait $process 2>/dev/null
up up_again
turn echo_again
down down_again

# Killed on its way up: when it has written what it takes, has the NIC, lets the NIC master the bus.
recorded() { [ -e /run/wherry-bypass/$nic.json ]; }
bound() { [ "$(driver $nic)" = vfio-pci ]; }
mastering() { bound && [ $(($(od -An -tu1 -j4 -N1 /sys/bus/pci/devices/$nic/config) & 4)) != 0 ]; }
for moment in recorded bound mastering; do
  wherry-bypass up $where >/dev/null 2>&1 &
  process=$!
  reached=1
  while [ -d /proc/$process ]; do
    $moment && reached=0 && break
  done
  kill -9 $process
  wait $process 2>/dev/null
  echo "RESULT at_$moment $reached"
  process=
  down down_$moment
done
ask last
dmesg | grep -iE 'DMAR.*fault|BUG:|WARNING:|Oops'
echo "RESULT faults $(dmesg | grep -ciE 'DMAR.*fault|BUG:|WARNING:|Oops')"
echo "RESULT end 0"
# The world outside ends the machine: QEMU 7.2 may crash when the kernel switches its IOMMU off.
read -r answer
