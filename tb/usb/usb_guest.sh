#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# What scripts/usb-guest runs as the first process of its guest. The hand that plugs the board in and pulls it out is the second serial port
# (tb/usb/usb_redir.c). Waits are long: the board's clock runs at some kHz.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp
printf 'root:x:0:0::/:/bin/sh\nann:x:1000:1000::/tmp:/bin/sh\nbob:x:1001:1001::/tmp:/bin/sh\n' >/etc/passwd
printf 'root:x:0:\nann:x:1000:\nbob:x:1001:\ndialout:x:20:\nplugdev:x:46:\n' >/etc/group
# What logind writes: Ann sits here, Bob came over the network.
mkdir -p /run/systemd/seats
printf 'IS_SEAT0=1\nCAN_MULTI_SESSION=1\nCAN_TTY=1\nACTIVE=c1\nACTIVE_UID=1000\n' >/run/systemd/seats/seat0
usb=usb:timeout=60000
rule=usr/lib/udev/rules.d/60-coltrain-usb.rules
model='--data digits --samples 64 --epochs 1 --layers 64-10'
cd /tmp || exit
. /check.sh

as() { # USER COMMAND...
  user=$1
  shift
  su "$user" -c "cd /tmp && $*"
}

node() { # the file of the board
  for d in /sys/bus/usb/devices/*; do
    [ "$(cat "$d/idVendor" 2>/dev/null)" = 0403 ] || continue
    printf '/dev/bus/usb/%03d/%03d\n' "$(cat "$d/busnum")" "$(cat "$d/devnum")"
  done
}

wait_for() { # COMMAND...: half a minute
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  echo "in vain: $*"
  return 1
}

plug() { # in; returns when udev is done with it
  echo + >/dev/ttyS1
  wait_for sh -c 'ls /dev/ttyUSB0' && udevadm settle && [ -c "$(node)" ]
}

gone() {
  [ -z "$(node)" ]
}

pull() {
  echo - >/dev/ttyS1
  wait_for gone && udevadm settle
}

says() { # TEXT USER COMMAND...: it fails with this sentence
  text=$1
  shift
  ! as "$@" >said 2>&1 && cat said && grep -q "$text" said
}

lists() { # TEXT USER
  as "$2" coltrain list >list && cat list && grep -q "$1" list
}

not_mine() { # USER: one who may not open the board
  ls -l "$(node)"
  says 'no permission for the board at bus' "$1" coltrain info --device usb: &&
    lists 'permission denied: no permission for the board at bus' "$1"
}

mine() {
  ls -l "$(node)"
  lists 'usb:serial=CT0001 .*FT232H at bus' ann && as ann coltrain info --device $usb
}

same() { # inference, with the bytes of emu:
  as ann coltrain infer --device $usb --data digits --model want.ct \>got.txt && cmp got.txt want.txt
}

busy() { # another program has the board
  as ann coltrain train "$model" --epochs 1000 --device $usb >held 2>&1 &
  wait_for sh -c '! ls /dev/ttyUSB0' || return
  says 'is in use by another program: close that first' ann coltrain info --device $usb && lists 'in use by another program' ann
}

ends_unplugged() { # the program that holds the board, which is pulled out
  echo - >/dev/ttyS1
  wait_for sh -c '! pgrep coltrain' || { cat held; return 1; }
  cat held
  grep -q 'unplugged' held
}

for module in usb-common usbcore usbserial ftdi_sio; do insmod /lib/modules.ct/$module.ko; done
systemd-udevd --daemon
insmod /lib/modules.ct/xhci-hcd.ko
insmod /lib/modules.ct/xhci-pci.ko
as ann coltrain train "$model" --device emu: --save want.ct >/dev/null
as ann coltrain infer --device emu: --data digits --model want.ct >want.txt
check 'no board: not found' says 'no board with an FT232H' ann coltrain info --device usb:
check 'plugged in: udev has seen it, the serial driver has it' plug
check 'without the rule: no permission, which is told from not found' not_mine ann
check 'the rule, as it is installed, and plugged in again' sh -c "cp /aside/$rule /$rule && udevadm control --reload"
check 'pulled out' pull
check 'plugged in again' plug
check 'with the rule: listed and open to who sits here' mine
check 'and to nobody else' not_mine bob
check 'coltrain test' as ann coltrain test --device $usb
check 'inference: the same bytes as emu:' same
check 'busy, which is told from no permission' busy
check 'unplugged while it works' ends_unplugged
check 'plugged in once more' plug
check 'it is as new: the same bytes as emu:' same
echo 'ok - all of it'
poweroff -f
