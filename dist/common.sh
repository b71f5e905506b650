# What the scripts of `dist` share; they source it from the project's root.
#
# Invariant: all that they make lies below `target`, and what ships depends on the sources and on nothing else: not on the
# time, the directory, or who builds.

target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
export CARGO_TARGET_DIR=$target
# Where what ships is laid.
out=${UNFRAG_DIST:-$target/packages}
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"$/\1/p' Cargo.toml)
export CARGO_TERM_COLOR=never

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Everything that has a date gets that of the last commit; of an unpacked archive, that of its newest change.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH
umask 022
export LC_ALL=C TZ=UTC

# The tools that Python's registry has (a C compiler and linker for every target among them), in an environment of their own.
tools() {
    local here=$target/dist-tools
    if ! cmp --silent dist/requirements.txt "$here/requirements.txt"; then
        rm -rf "$here"
        python3 -m venv "$here" || fail "Python's venv is needed: install python3-venv"
        "$here/bin/pip" install --quiet --disable-pip-version-check --requirement dist/requirements.txt ||
            fail "the tools in dist/requirements.txt cannot be installed by pip"
        cp dist/requirements.txt "$here/"
    fi
    export PATH=$here/bin:$PATH
    # What zig has compiled of its own, beside what cargo has.
    export ZIG_GLOBAL_CACHE_DIR=$target/zig ZIG_LOCAL_CACHE_DIR=$target/zig
}

# The standard library for a target.
standard_library() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] && return
    rustup target add "$1" >/dev/null 2>&1 ||
        fail "Rust's standard library for $1 is not installed, and rustup cannot get it from here"
}

# The paths of this computer are left out of what is compiled: by rustc for a target, and by the C compiler for all.
without_paths() {
    local flags="--remap-path-prefix=$PWD=unfrag --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    flags+=" --remap-path-prefix=$target=target"
    export "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$1")_RUSTFLAGS=$flags"
    local c="-ffile-prefix-map=$PWD=unfrag -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=cargo -ffile-prefix-map=$target=target"
    export "CFLAGS_$(tr - _ <<<"$1")=$c"
}

# Sets the times of all in a directory.
dated() {
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# packed DIRECTORY ARCHIVE.tar.gz: an archive with the directory, whose bytes depend on nothing else.
packed() {
    tar --create --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory="$(dirname "$1")" "$(basename "$1")" | gzip --no-name --best >"$2"
}

# Writes the sums of all that lies there.
sums() {
    (
        cd "$out"
        find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | sort | xargs -r sha256sum >SHA256SUMS
    )
}

# The names by which others know an architecture.
debian_name() {
    case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac
}
