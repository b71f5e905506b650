//! Snapshots from directories, archives and logs; and every recorded snapshot, read and written.

use std::fs;
use std::path::{Path, PathBuf};

use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::recording::Snapshot;
use unfrag_linux::snapshots;

/// A directory that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("unfrag-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(vec![]);
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(1_700_000_000);
        tar.append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap()
}

fn gz(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    packer.write_all(content).unwrap();
    packer.finish().unwrap()
}

fn names(snapshots: &[Snapshot]) -> Vec<&str> {
    snapshots.iter().map(|s| s.name.as_str()).collect()
}

#[test]
fn uptime_dates_all_files_of_its_directory() {
    let scratch = Scratch::new("uptime");
    scratch.write("snap/0001/buddyinfo", "b1");
    scratch.write("snap/0001/uptime", "9.50 1.00\n");
    scratch.write("snap/0000-idle/uptime", "2.25 1.00\n");
    scratch.write("snap/0000-idle/buddyinfo", "b0");
    scratch.write("snap/9000/vmstat", "v");
    scratch.write("snap/README", "not a copy of anything");
    let all = snapshots::read(&scratch.0).unwrap();
    assert_eq!(names(&all), ["0000-idle", "0001", "9000"]);
    assert_eq!(all[0].time_of("buddyinfo"), Some(2_250_000_000));
    assert_eq!(all[1].file("buddyinfo"), Some(&b"b1"[..]));
    // Clocks are not mixed: a directory without uptime is undated, and last.
    assert_eq!(all[2].time_of("vmstat"), None);
}

#[test]
fn an_archive_with_an_index_has_times_to_the_nanosecond() {
    let scratch = Scratch::new("index");
    let index = "record\tt0_ns\tt1_ns\tbytes\ns0001/vmstat\t70\t75\t1\ns0001/buddyinfo\t60\t66\t1\nstart/vmstat\t5\t6\t1\nstart/kpageflags\t1\t3\t8\n";
    let tar = archive(&[
        ("./index.tsv", index),
        ("./s0001/buddyinfo", "b"),
        ("./s0001/vmstat", "v"),
        ("./start/vmstat", "w"),
        ("./info/dmesg", "no procfs"),
        ("./info/sysctl-vm", "vm.swappiness = 60\n"),
    ]);
    let path = scratch.write("snapshots.tar.zst", zstd::encode_all(&tar[..], 1).unwrap());
    let flags = archive(&[("./start/kpageflags", "12345678")]);
    let beside = scratch.write("kpageflags.tar.gz", gz(&flags));
    let all = snapshots::read(&path).unwrap();
    assert_eq!(names(&all), ["start", "s0001", "info"]);
    assert_eq!(
        all[2].files.len(),
        1,
        "what is known of the host, but not its log"
    );
    let files: Vec<_> = all[1]
        .files
        .iter()
        .map(|f| (f.name.as_str(), f.time))
        .collect();
    assert_eq!(
        files,
        [("buddyinfo", Some((60, 66))), ("vmstat", Some((70, 75)))]
    );
    let both = snapshots::read_all(&[&path, &beside]).unwrap();
    assert_eq!(both[0].files[0].name, "kpageflags");
    assert_eq!(both[0].time_of("kpageflags"), Some(2));
    assert_eq!(
        snapshots::read(&scratch.0).unwrap(),
        both,
        "the directory that holds both"
    );
}

#[test]
fn directories_named_after_dates_are_dated_by_their_names() {
    let scratch = Scratch::new("dates");
    scratch.write("20261121-204500/vmstat.gz", gz(b"nr 1\n"));
    scratch.write("2026-11-21T20:44:59Z/vmstat", "nr 0\n");
    scratch.write("notes/vmstat", "nr 2\n");
    let all = snapshots::read(&scratch.0).unwrap();
    assert_eq!(
        names(&all),
        ["2026-11-21T20:44:59Z", "20261121-204500", "notes"]
    );
    assert_eq!(all[1].file("vmstat"), Some(&b"nr 1\n"[..]));
    assert_eq!(all[1].time_of("vmstat"), Some(1_795_293_900_000_000_000));
}

#[test]
fn files_are_dated_by_their_change_if_nothing_else_dates_them() {
    let scratch = Scratch::new("mtime");
    let path = scratch.write(
        "a.tar",
        archive(&[("x/vmstat", "nr 1\n"), ("y/vmstat", "nr 2\n")]),
    );
    let all = snapshots::read(&path).unwrap();
    assert_eq!(names(&all), ["x", "y"]);
    assert_eq!(all[0].time_of("vmstat"), Some(1_700_000_000_000_000_000));
    scratch.write("one/vmstat", "nr 1\n");
    let all = snapshots::read(&scratch.0.join("one")).unwrap();
    assert_eq!(names(&all), ["."]);
    assert!(all[0].time_of("vmstat").unwrap() > 1_700_000_000_000_000_000);
}

#[test]
fn logs_of_several_monitors_are_grouped_by_time() {
    let scratch = Scratch::new("logs");
    let log = |text: &str| format!("time: 1397146210\n{text} 0\n\ntime: 1397146211\n{text} 1\n\n");
    scratch.write("logs/proc-vmstat-stress-1.gz", gz(log("nr").as_bytes()));
    let path = scratch.write("logs/proc-buddyinfo-stress-1", log("Node"));
    scratch.write("logs/top-1", "time: 1397146210\nPID\n");
    let all = snapshots::read(&scratch.0).unwrap();
    assert_eq!(names(&all), ["1397146210", "1397146211"]);
    assert_eq!(all[1].file("buddyinfo"), Some(&b"Node 1\n"[..]));
    assert_eq!(all[1].file("vmstat"), Some(&b"nr 1\n"[..]));
    assert_eq!(all[1].time_of("vmstat"), Some(1_397_146_211_000_000_000));
    assert_eq!(snapshots::read(&path).unwrap().len(), 2);
}

#[test]
fn unreadable_sources_are_named_with_a_way_out() {
    let scratch = Scratch::new("errors");
    let e = snapshots::read(&scratch.write("notes.txt", "hello"))
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("notes.txt") && e.contains("directory of dated"),
        "{e}"
    );
    let tar = archive(&[("x/vmstat", "nr 1\n")]);
    let e = snapshots::read(&scratch.write("cut.tar", &tar[..514]))
        .unwrap_err()
        .to_string();
    assert!(e.contains("cut.tar") && e.contains("cut off"), "{e}");
    let e = snapshots::read(&scratch.write("x.tar.zst", "hello"))
        .unwrap_err()
        .to_string();
    assert!(e.contains("x.tar.zst"), "{e}");
    assert!(
        snapshots::read(Path::new("/nonexistent/x"))
            .unwrap_err()
            .file
            .is_some()
    );
    scratch.write("d/1/uptime", "soon\n");
    let e = snapshots::read(&scratch.0.join("d"))
        .unwrap_err()
        .to_string();
    assert!(e.contains("1/uptime") && e.contains("byte 0"), "{e}");
}

/// `spec: 7.1, 7.2, 7.3, 7.4, 7.5`
#[test]
fn recorded_snapshots_are_written_as_they_were_read() {
    let Some(data) = crate::common::recorded_data() else {
        return;
    };
    let mut files = 0;
    for set in [
        "qemu-6.1-640M-compact",
        "qemu-6.1-768M-gcc",
        "qemu-6.1-640M-pressure",
        "qemu-6.1-1536M-huge-p20",
        "qemu-6.1-1536M-huge-p20/rep2",
        "qemu-6.1-1536M-huge-p20/rep3",
    ] {
        let all = snapshots::read(&data.join(set)).unwrap();
        assert!(all.len() >= 30, "{set}: {}", all.len());
        for (snapshot, file) in all.iter().flat_map(|s| s.files.iter().map(move |f| (s, f))) {
            let place = format!("{set}/{}/{}", snapshot.name, file.name);
            assert!(file.time.is_some(), "{place}");
            files += 1;
            match crate::common::echo(&file.name, &file.content.bytes()) {
                Some(Ok(text)) => assert_eq!(file.content, text.into(), "{place}"),
                Some(Err(e)) => panic!("{place}: {e}"),
                None if file.name == "kpageflags" => {
                    let bytes = file.content.bytes();
                    let flags = PageFlags::read(&mut &bytes[..]).unwrap();
                    assert!(flags.write() == *bytes, "{place}");
                }
                None => assert!(
                    ["uptime", "version", "sysctl-vm"].contains(&&file.name[..]),
                    "{place}"
                ),
            }
        }
        let times: Vec<_> = all
            .iter()
            .map(|s| s.files.iter().filter_map(|f| f.time).min())
            .collect();
        assert!(times.is_sorted(), "{set}");
    }
    println!("{files} recorded files read and written");
    assert!(files > 3000);
}
