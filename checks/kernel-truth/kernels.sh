# Kernels and busybox from Debian's packages, unpacked into a cache; nothing is installed. Sourced by ./run, which sets `cache`.
#
# The cache has an apt of its own (sources, lists, state), whose URIs are those that this machine has configured, so that a mirror is used
# where one is. Debian 12 has 6.1, its security suite 6.12; Debian 13's backports have newer ones. TRUTH_DEBIAN and TRUTH_SECURITY name
# the two archives on a machine that is not Debian.

# The URI of an archive that this machine has configured, by its label.
archive() { # label
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -F'|' -v label="$1" '$1 == "Debian" && $2 == label {print $3; exit}'
}

private_apt() { # apt-get or apt-cache, arguments
    local program=$1
    shift
    "$program" -q -o "Dir::Etc::sourcelist=$cache/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State=$cache/apt/state" -o "Dir::State::Lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt/cache" \
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User= \
        -o Dir::State::status=/dev/null -o Acquire::Languages=none "$@"
}

# Makes the private apt and fetches its lists, once a day.
prepare_apt() {
    local debian=${TRUTH_DEBIAN:-} security=${TRUTH_SECURITY:-} key=/usr/share/keyrings/debian-archive-keyring.gpg signed=
    command -v apt-get >/dev/null || { why="there is no apt-get"; return 1; }
    [ -n "$debian" ] || debian=$(archive Debian)
    [ -n "$security" ] || security=$(archive Debian-Security)
    [ -n "$debian" ] || { why="no archive of Debian is configured here (TRUTH_DEBIAN=URI names one)"; return 1; }
    mkdir -p "$cache"/apt/{state,lists/partial,cache/archives/partial} "$cache/debs"
    [ ! -e $key ] || signed="[signed-by=$key]"
    {
        echo "deb $signed $debian bookworm main"
        [ -z "$security" ] || echo "deb $signed $security bookworm-security main"
        echo "deb $signed $debian trixie-backports main"
    } >"$cache/apt/sources.list"
    if [ -n "$(find "$cache/apt/fetched" -mmin -1440 2>/dev/null)" ]; then return; fi
    private_apt apt-get update >"$cache/apt/update.log" 2>&1 ||
        [ -n "$(ls "$cache"/apt/lists/*Packages* 2>/dev/null)" ] || { why="no package lists: $(tail -n 1 "$cache/apt/update.log")"; return 1; }
    touch "$cache/apt/fetched"
}

# The package of the newest kernel of a release; unsigned images are the same kernel without a signature.
kernel_package() { # release
    private_apt apt-cache pkgnames "linux-image-$1" |
        grep -E "^linux-image-$1(\.[0-9]+)*([-+][a-z0-9.+~-]*)?-cloud-amd64(-unsigned)?\$" |
        sed -E 's/^(.*-cloud-amd64)(-unsigned)?$/\1 &/' | sort -k1,1V -k2,2r | awk '{print $2}' | tail -n 1
}

# Unpacks a package into the cache, under a name that is complete or not there.
unpack() { # package directory
    local deb
    [ ! -d "$2" ] || return 0
    (cd "$cache/debs" && private_apt apt-get download "$1" >"$cache/apt/download.log" 2>&1) ||
        { why="$1 cannot be fetched: $(tail -n 1 "$cache/apt/download.log")"; return 1; }
    deb=$(ls -t "$cache/debs/$1"_*.deb | head -n 1)
    rm -rf "$2.part"
    mkdir -p "$2.part"
    dpkg-deb -x "$deb" "$2.part" || { why="$1 cannot be unpacked"; return 1; }
    rm -f "$deb"
    mv "$2.part" "$2"
}

# Has a static busybox unpacked: all that a guest runs beside the loads.
prepare_busybox() {
    [ -d "$cache/busybox" ] || { prepare_apt && unpack busybox-static "$cache/busybox"; }
}

# Has the kernel of a release unpacked at $cache/kernels/RELEASE; else says why not in `why`.
get_kernel() { # release
    local package part dir=$cache/kernels/$1
    [ ! -d "$dir" ] || return 0
    prepare_apt || return 1
    package=$(kernel_package "$1")
    [ -n "$package" ] || { why="no package of it is in Debian 12 or in Debian 13's backports"; return 1; }
    mkdir -p "$cache/kernels"
    unpack "$package" "$dir.all" || return 1
    # From 7.0 on the image's package holds neither the image nor its modules: two others do.
    if [ -z "$(ls "$dir.all"/boot/vmlinuz-* 2>/dev/null)" ]; then
        for part in binary modules; do
            unpack "${package/linux-image-/linux-$part-}" "$dir.$part" || return 1
            cp -a "$dir.$part/." "$dir.all/"
            rm -rf "$dir.$part"
        done
    fi
    [ -n "$(find_kernel "$dir.all")" ] || { why="$package holds no kernel"; rm -rf "$dir.all"; return 1; }
    mv "$dir.all" "$dir"
}

find_kernel() { # directory
    find "$1" -name 'vmlinuz*' -type f | head -n 1
}
