# One boot: a kernel, a load, its settings. Sourced by ./run, which sets `cache`, `here`, `accel` and `cpus`.

# KVM, where this kernel really boots with it: a machine may offer /dev/kvm and not be able to run one. Asked once for each kernel.
choose_accel() { # release
    local log=$cache/accel-$1.log
    accel=tcg,thread=multi processor=max
    [ -r /dev/kvm ] && [ -w /dev/kvm ] || return 0
    if [ ! -e "$log" ]; then
        # In a shell of its own, whose message of a QEMU that gives up is no news. There is no root: a kernel that misses it has run.
        (timeout 20 qemu-system-x86_64 -accel kvm -machine q35 -cpu host -m 256 -nodefaults -display none -no-reboot \
            -serial stdio -kernel "$(find_kernel "$cache/kernels/$1")" -append 'console=ttyS0 panic=-1' </dev/null || true) >"$log" 2>&1
    fi
    ! grep -q 'Unable to mount root' "$log" || accel=kvm processor=host
}

# Boots a guest and lays what it recorded into a directory. Answers with 1, and `why`, if there is no recording.
boot() { # directory release load settings
    local dir=$1 release=$2 load=$3 settings=$4 nodes=1
    local memory=640 data_mib=0 swap_mib=0 cpus=$cpus machine=()
    eval "$(grep -E '^(memory|data_mib|swap_mib|cpus|nodes)=' "$here/loads/$load")"
    rm -rf "$dir"
    mkdir -p "$dir"
    truncate -s 3000M "$dir/rec.img"
    mke2fs -q -t ext4 "$dir/rec.img"
    local disks=0 words=
    disk() { # file name options
        machine+=(-drive "file=$1,if=none,id=$2,format=raw,cache=unsafe$3" -device "virtio-blk-pci,drive=$2,addr=$((4 + disks))")
        words+=" truth.$2=/dev/vd$(printf %s abcd | cut -c$((disks + 1)))"
        disks=$((disks + 1))
    }
    disk "$cache/root.img" root ,snapshot=on
    disk "$dir/rec.img" rec ""
    if [ "$data_mib" != 0 ]; then
        build_data "$data_mib"
        disk "$cache/data-$data_mib.img" data ,snapshot=on
    fi
    if [ "$swap_mib" != 0 ]; then
        truncate -s "${swap_mib}M" "$dir/swap.img"
        disk "$dir/swap.img" swap ""
    fi
    if [ "$nodes" = 2 ]; then
        machine+=(-object "memory-backend-ram,id=m0,size=$((memory / 2))M" -object "memory-backend-ram,id=m1,size=$((memory / 2))M"
            -numa "node,nodeid=0,cpus=0-$((cpus / 2 - 1)),memdev=m0" -numa "node,nodeid=1,cpus=$((cpus / 2))-$((cpus - 1)),memdev=m1")
    fi
    [ "$settings" != - ] || settings=
    TMPDIR=$cache timeout 900 nice -n 10 qemu-system-x86_64 -accel "$accel" -machine q35 -cpu "$processor" -smp "$cpus" \
        -m "$memory" -nodefaults -display none -no-reboot -serial stdio -kernel "$(find_kernel "$cache/kernels/$release")" \
        -initrd "$cache/initramfs-$release.gz" "${machine[@]}" \
        -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off truth.load=$load truth.settings=$settings truth.recorder=$recorder$words" \
        </dev/null >"$dir/serial.log" 2>&1
    debugfs -R "rdump / $dir" "$dir/rec.img" >/dev/null 2>&1
    rm -rf "$dir"/{rec,swap}.img "$dir/lost+found"
    if [ -s "$dir/trace.dat" ]; then
        "$unfrag" import "$dir/trace.dat" --snapshots "$dir/procfs" -o "$dir/recording.unfrag" >"$dir/import.log" 2>&1 || true
        rm -rf "$dir/trace.dat" "$dir/procfs"
    fi
    if [ ! -s "$dir/recording.unfrag" ]; then
        why="no recording: $(tr -d '\r' <"$dir/serial.log" | grep -v '^$' | tail -n 1 | cut -c1-200)"
        return 1
    fi
}
