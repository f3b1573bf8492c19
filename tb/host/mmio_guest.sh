#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
#
# What scripts/mmio-guest runs as the first process of its guest.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
pci=/sys/bus/pci/devices/0000:00:05.0
by_pci=mmio:$pci/resource0,mem=$pci/resource2
train='train --data digits --samples 128 --epochs 1 --layers 64-16-10'
cd /tmp || exit
. /check.sh

same() { # URI: trains there and asks, and compares with emu:
  # shellcheck disable=SC2086
  coltrain $train --device "$1" --save got.ct && cmp got.ct want.ct &&
    coltrain infer --device "$1" --data digits --model got.ct >got.txt && cmp got.txt want.txt
}

refuses() { # TEXT URI
  ! coltrain info --device "$2" >refusal 2>&1 && cat refusal && grep -q "$1" refusal
}

loses() { # TEXT URI COMMAND: the command takes the device away while it trains for long
  # shellcheck disable=SC2086
  coltrain $train --epochs 1000 --device "$2" >lost 2>&1 &
  pid=$!
  sleep 3
  refuses 'is open elsewhere' "$2" || return
  sh -c "$3"
  for _ in 1 2 3 4 5; do
    kill -0 $pid 2>/dev/null || break
    sleep 1
  done
  if kill -9 $pid 2>/dev/null; then
    cat lost
    echo 'it goes on'
    return 1
  fi
  cat lost
  grep -q "$1" lost
}

# shellcheck disable=SC2086
coltrain $train --device emu: --save want.ct >/dev/null
coltrain infer --device emu: --data digits --model want.ct >want.txt
printf '\0\0' | dd of=$pci/config bs=1 seek=4 conv=notrunc 2>/dev/null # memory space off
check 'a PCI function that is off is refused' refuses 'echo 1 >' "$by_pci"
echo 1 >$pci/enable
check 'sysfs resource files: the same bytes as emu:' same "$by_pci"
check 'write-combining memory: the same bytes as emu:' same "mmio:$pci/resource0,mem=$pci/resource2_wc"
regs=$(sed -n 1p $pci/resource | cut -d' ' -f1)
mem=$(sed -n 3p $pci/resource | cut -d' ' -f1)
check '/dev/mem: the same bytes as emu:' same "mmio:/dev/mem,regs=$regs,mem-at=$mem,mem-size=0x1000000"
check '/dev/uio0 before its driver is refused' refuses 'is not there' mmio:/dev/uio0
insmod /lib/modules.ct/uio.ko
insmod /lib/modules.ct/uio_cif.ko
echo 1209 0001 >/sys/bus/pci/drivers/hilscher/new_id
check '/dev/uio0: the same bytes as emu:' same mmio:/dev/uio0
check 'unbound while it works' loses 'unbound' mmio:/dev/uio0 'echo 0000:00:05.0 >/sys/bus/pci/drivers/hilscher/unbind'
echo 1 >$pci/enable
insmod /lib/modules.ct/uio_pci_generic.ko
echo 1234 11e8 >/sys/bus/pci/drivers/uio_pci_generic/new_id # the interrupt of QEMU's device for teaching
edu=/sys/bus/pci/devices/0000:00:06.0
echo 1 >$edu/enable
irq=/dev/$(ls $edu/uio)
check "$irq that is silent: the same bytes as emu:" same "$by_pci,irq=$irq"
devmem $(($(sed -n 1p $edu/resource | cut -d' ' -f1) + 0x60)) 32 1
check "$irq that comes for nothing: the same bytes as emu:" same "$by_pci,irq=$irq"
check "$irq has come, and been enabled again" sh -c "[ \"\$(grep -c uio_pci_generic /proc/interrupts)\" = 1 ] && grep uio_pci_generic /proc/interrupts && [ \"\$(cat $edu/uio/*/event)\" -ge 8 ]"
check 'removed while it works' loses 'no longer in /sys' "$by_pci" "echo 1 >$pci/remove"
echo 'ok - all of it'
poweroff -f
