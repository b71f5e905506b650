# The disks of a guest: the root disk with the loads, what a load reads, an initramfs for each kernel. Sourced by ./run, which sets
# `cache`, `here` and `unfrag`.

# Copies a program and the libraries that it names into the root.
add_program() { # file where
    local library
    mkdir -p "$root$(dirname "$2")"
    cp -L "$1" "$root$2"
    for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ )]*'); do
        mkdir -p "$root$(dirname "$library")"
        [ -e "$root$library" ] || cp -L "$library" "$root$library"
    done
}

# One C file as long as a compiler takes some seconds for, the same on every machine.
big_source() {
    awk -v functions=700 'BEGIN {
        for (f = 0; f < functions; f++) {
            printf "static unsigned f%d(unsigned a, unsigned *p)\n{\n\tunsigned b = a;\n", f
            for (i = 0; i < 12; i++)
                printf "\tif (b %% %d == p[%d])\n\t\tb = b * %du + p[b & %d];\n", i + 3, i, f * 31 + i * 7 + 1, 15
            printf "\treturn b;\n}\n"
        }
        printf "unsigned all(unsigned a, unsigned *p)\n{\n"
        for (f = 0; f < functions; f++) printf "\ta += f%d(a, p);\n", f
        printf "\treturn a;\n}\n"
    }'
}

build_root() {
    local source compiler
    root=$cache/root
    rm -rf "$root"
    mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,loads,src,data,rec,proc,sys,dev,run,tmp,etc}
    cp "$(find "$cache/busybox" -name busybox -type f -perm -u+x | head -n 1)" "$root/bin/busybox"
    mkdir -p "$cache/programs"
    for source in "$here"/programs/*.c; do
        cc -O2 -Wall -Wextra -static -o "$root/usr/bin/$(basename "$source" .c)" "$source"
    done
    cp "$root/usr/bin/service" "$cache/programs/"
    add_program "$unfrag" /usr/bin/unfrag
    add_program "$(command -v gcc)" /usr/bin/gcc
    compiler=$(gcc -print-prog-name=cc1)
    add_program "$compiler" "$compiler"
    ! command -v trace-cmd >/dev/null || add_program "$(command -v trace-cmd)" /usr/bin/trace-cmd
    big_source >"$root/src/big.i"
    cp "$here"/loads/* "$root/loads/"
    cp "$here"/guest/{guest,work,phase,traced} "$root/sbin/"
    chmod 755 "$root"/sbin/*
    rm -f "$cache/root.img"
    truncate -s 700M "$cache/root.img"
    mke2fs -q -t ext4 -d "$root" "$cache/root.img"
}

# A disk with the files that a file server serves, made once.
build_data() { # MiB
    [ ! -e "$cache/data-$1.img" ] || return 0
    rm -rf "$cache/data"
    mkdir -p "$cache/data"
    "$cache/programs/service" make "$cache/data/f" "$1"
    rm -f "$cache/data.part"
    truncate -s "$(($1 * 2))M" "$cache/data.part"
    mke2fs -q -t ext4 -d "$cache/data" "$cache/data.part"
    rm -rf "$cache/data"
    mv "$cache/data.part" "$cache/data-$1.img"
}

# Modules of virtio disks in the order in which they must be loaded; what a kernel has built in is not among them.
build_initramfs() { # release
    local name file dir=$cache/initramfs-$1
    rm -rf "$dir"
    mkdir -p "$dir"/{bin,dev,root,modules}
    cp "$(find "$cache/busybox" -name busybox -type f -perm -u+x | head -n 1)" "$dir/bin/busybox"
    cp "$here/guest/init" "$dir/init"
    chmod 755 "$dir/init"
    : >"$dir/modules/order"
    for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
        file=$(find "$cache/kernels/$1" -name "$name.ko" -o -name "$name.ko.xz" -o -name "$name.ko.zst" | head -n 1)
        case $file in
        '') continue ;;
        *.xz) xz -dc "$file" >"$dir/modules/$name.ko" ;;
        *.zst) zstd -qdc "$file" >"$dir/modules/$name.ko" ;;
        *) cp "$file" "$dir/modules/" ;;
        esac
        echo "$name.ko" >>"$dir/modules/order"
    done
    (cd "$dir" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null) | gzip -6 >"$cache/initramfs-$1.gz"
    rm -rf "$dir"
}
