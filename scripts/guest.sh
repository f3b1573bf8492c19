# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# A small Debian for QEMU: its kernel, and files that are packed for its memory. Read by scripts/mmio-guest and scripts/usb-guest.
# BUILD: where things are built. CT_GUEST_KERNEL: a folder with boot/vmlinuz-* and lib/modules; without it the package of Debian's kernel
# is downloaded (70 MB) into $BUILD/guest, once.

# guest_needs COMMAND...: whether they are there, or a sentence and the end.
guest_needs() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "there is no $tool: scripts/setup guest installs it" >&2; exit 1; }
  done
}

# guest_kernel DIR: sets $kernel, the folder with the kernel; DIR is for what is needed on the way.
guest_kernel() {
  kernel=${CT_GUEST_KERNEL:-${BUILD:-build}/guest/kernel}
  [ ! -d "$kernel/boot" ] || return 0
  package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
  (cd "$1" && apt-get -qq download "$package")
  mkdir -p "$kernel"
  dpkg-deb -x "$1"/linux-image-*.deb "$kernel"
}

# guest_root DIR: the folders of a system with busybox in it.
guest_root() {
  for folder in bin dev etc lib proc run sys tmp; do mkdir -p "$1/$folder"; done
  cp "$(command -v busybox)" "$1/bin/busybox"
}

# guest_init ROOT FILE: what the guest does, with check() of tb/host/guest_check.sh.
guest_init() {
  install -m 755 "$2" "$1/init"
  install -m 644 tb/host/guest_check.sh "$1/check.sh"
}

# guest_program ROOT FILE PLACE: a program or a library, with the libraries that it needs.
guest_program() {
  mkdir -p "$1$(dirname "$3")"
  cp -L "$2" "$1$3"
  ldd "$2" | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$1${lib%/*}"
    cp -L "$lib" "$1$lib"
  done
}

# guest_modules ROOT MODULE...: modules of the kernel, in /lib/modules.ct.
guest_modules() {
  mkdir -p "$1/lib/modules.ct"
  to=$1/lib/modules.ct
  shift
  for module in "$@"; do
    file=$(find "$kernel/" -name "$module.ko*" | head -n 1)
    case $file in
      *.xz) xz -dc "$file" >"$to/$module.ko" ;;
      ?*) cp "$file" "$to/$module.ko" ;;
      *) echo "the kernel in $kernel has no module $module" >&2; exit 1 ;;
    esac
  done
}

# guest_pack ROOT FILE: the files as QEMU takes them.
guest_pack() {
  (cd "$1" && find . | cpio -o -H newc --quiet) >"$2"
}

# guest_verdict LOG: whether the guest came to its end, and all was well.
guest_verdict() {
  grep -a -q '^ok - all of it$' "$1" && ! grep -a -q '^not ok' "$1"
}
