//! Debian's programs at work on an allocator: what they answer, how long it takes, how much memory they hold.
//!
//! The tests run them for the answers, the bench for the numbers.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A program at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// g++ compiles a file that uses much of the C++ library.
    Gcc,
    /// redis-server serves redis-benchmark's 16 clients.
    Redis,
    /// Python runs a part of its own test suite, with all objects from malloc.
    Python,
    /// sqlite3 fills a table and builds two indexes.
    Sqlite,
}

/// What a run showed.
#[derive(Debug)]
pub struct Outcome {
    pub time: Duration,
    /// Most resident memory, in bytes: of the largest process.
    pub resident: u64,
    /// What must be the same on each allocator.
    pub answer: Vec<u8>,
}

/// How much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// For a test.
    Little,
    /// For a measurement.
    Much,
}

const PYTHON_TESTS: [&str; 12] = [
    "test_ast",
    "test_collections",
    "test_copy",
    "test_csv",
    "test_dict",
    "test_heapq",
    "test_json",
    "test_pickle",
    "test_re",
    "test_statistics",
    "test_tokenize",
    "test_xml_etree",
];

impl Work {
    pub const ALL: [Work; 4] = [Work::Gcc, Work::Redis, Work::Python, Work::Sqlite];

    pub fn name(self) -> &'static str {
        match self {
            Work::Gcc => "gcc",
            Work::Redis => "redis",
            Work::Python => "python",
            Work::Sqlite => "sqlite",
        }
    }

    /// What is missing to run it, if anything is.
    pub fn missing(self) -> Option<String> {
        let programs: &[&str] = match self {
            Work::Gcc => &["g++"],
            Work::Redis => &["redis-server", "redis-benchmark", "redis-cli"],
            Work::Python => &["python3"],
            Work::Sqlite => &["sqlite3"],
        };
        let is_there = |p: &&&str| {
            let found = Command::new(p)
                .arg("--version")
                .stdout(Stdio::null())
                .status();
            !found.is_ok_and(|s| s.success())
        };
        if let Some(p) = programs.iter().find(is_there) {
            return Some(format!("{p} is not installed"));
        }
        let suite = || {
            let import = "import test.test_json, test.test_xml_etree";
            let mut python = Command::new("python3");
            python.args(["-c", import]).stderr(Stdio::null()).status()
        };
        (self == Work::Python && !suite().is_ok_and(|s| s.success()))
            .then(|| "python3 has no test suite".into())
    }

    /// Runs it once in an empty directory.
    pub fn run(self, preload: Option<&Path>, dir: &Path, amount: Amount) -> Result<Outcome> {
        match self {
            Work::Gcc => gcc(preload, dir, amount),
            Work::Redis => redis(preload, dir, amount),
            Work::Python => python(preload, dir, amount),
            Work::Sqlite => sqlite(preload, dir, amount),
        }
    }
}

/// A command on an allocator.
pub fn command(program: &str, preload: Option<&Path>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(dir)
        .env_remove("LD_PRELOAD")
        .env("LC_ALL", "C");
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// Runs a command to its end: what it printed, how long it took, the most memory of one of its processes.
fn measure(mut command: Command) -> Result<Outcome> {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut answer = Vec::new();
    child
        .stdout
        .take()
        .ok_or("no output")?
        .read_to_end(&mut answer)?;
    let (status, usage) = wait(&child)?;
    let time = begin.elapsed();
    if !status.success() {
        let said = String::from_utf8_lossy(&answer).into_owned();
        return Err(format!("{command:?} ends with {status}: {said}").into());
    }
    Ok(Outcome {
        time,
        resident: usage.ru_maxrss as u64 * 1024,
        answer,
    })
}

/// Waits for a process, with what it used.
fn wait(child: &Child) -> Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: a plain structure of numbers.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: both can be written to; the process is a child that nobody else waits for.
    let ended = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    if ended < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok((ExitStatus::from_raw(status), usage))
}

fn gcc(preload: Option<&Path>, dir: &Path, amount: Amount) -> Result<Outcome> {
    fs::write(dir.join("words.cc"), include_str!("words.cc"))?;
    let level = match amount {
        Amount::Little => "-O0",
        Amount::Much => "-O2",
    };
    let mut compile = command("g++", preload, dir);
    compile.args(["-std=c++17", level, "-c", "words.cc", "-o", "words.o"]);
    let mut outcome = measure(compile)?;
    outcome.answer = fs::read(dir.join("words.o"))?;
    Ok(outcome)
}

fn python(preload: Option<&Path>, dir: &Path, amount: Amount) -> Result<Outcome> {
    let tests = match amount {
        Amount::Little => &PYTHON_TESTS[6..8],
        Amount::Much => &PYTHON_TESTS[..],
    };
    let mut run = command("python3", preload, dir);
    run.env("PYTHONMALLOC", "malloc").env("PYTHONHASHSEED", "0");
    run.args(["-m", "test", "-q"])
        .args(tests)
        .stderr(Stdio::null());
    let mut outcome = measure(run)?;
    // Times are in its output, so the verdict is the answer.
    let said = String::from_utf8_lossy(&outcome.answer).into_owned();
    let verdict = said.lines().find(|l| l.contains("Result: SUCCESS"));
    outcome.answer = verdict.ok_or_else(|| said.clone())?.into();
    Ok(outcome)
}

fn sqlite(preload: Option<&Path>, dir: &Path, amount: Amount) -> Result<Outcome> {
    let rows = match amount {
        Amount::Little => 20_000,
        Amount::Much => 400_000,
    };
    let script = format!(
        "pragma temp_store=memory; pragma cache_size=-400000;
         create table t(a integer, b text, c real);
         with recursive n(i) as (select 1 union all select i+1 from n where i<{rows})
           insert into t select (i*7919)%1000003, printf('%08x-%d', (i*2654435761)%4294967296, i), i*0.37 from n;
         create index by_b on t(b); create index by_a on t(a, c);
         select count(*), sum(a), min(b), max(b), total(c) from t;
         select a%97, count(distinct b), group_concat(substr(b,1,2), '') from t where a<20000 group by 1;
         pragma integrity_check;"
    );
    let mut run = command("sqlite3", preload, dir);
    run.args([":memory:", &script]);
    measure(run)
}

fn redis(preload: Option<&Path>, dir: &Path, amount: Amount) -> Result<Outcome> {
    let requests = match amount {
        Amount::Little => "5000",
        Amount::Much => "200000",
    };
    let mut server = command("redis-server", preload, dir);
    // A socket file in a short directory: its name has at most 107 bytes.
    let socket = dir.join("redis.sock");
    server.args([
        "--port",
        "0",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        ".",
    ]);
    server.arg("--unixsocket").arg(&socket);
    server.stdout(Stdio::null());
    // SAFETY: the call is one that a child may make: the server ends with this program.
    unsafe {
        server.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    let server = server.spawn()?;
    let served = serve(&socket, dir, requests, server.id());
    // SAFETY: a child that nobody has waited for.
    unsafe { libc::kill(server.id() as i32, libc::SIGTERM) };
    let (status, _) = wait(&server)?;
    let outcome = served?;
    if !status.success() {
        return Err(format!("redis-server ends with {status}").into());
    }
    Ok(outcome)
}

/// Has a server's clients at work.
fn serve(socket: &PathBuf, dir: &Path, requests: &str, server: u32) -> Result<Outcome> {
    let ask = |words: &[&str]| -> Result<String> {
        let mut cli = command("redis-cli", None, dir);
        let out = cli.arg("-s").arg(socket).args(words).output()?;
        Ok(String::from_utf8(out.stdout)?)
    };
    let begin = Instant::now();
    while !socket.exists() || !ask(&["ping"])?.starts_with("PONG") {
        if begin.elapsed() > Duration::from_secs(20) {
            return Err("redis-server does not answer within 20 s".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let begin = Instant::now();
    let mut clients = command("redis-benchmark", None, dir);
    clients
        .arg("-s")
        .arg(socket)
        .args(["-c", "16", "-n", requests]);
    clients.args(["-r", "100000", "-d", "100", "-P", "8", "-q"]);
    clients.args([
        "-t",
        "set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100",
    ]);
    let out = clients.stderr(Stdio::null()).output()?;
    let time = begin.elapsed();
    if !out.status.success() {
        return Err(format!("redis-benchmark ends with {}", out.status).into());
    }
    // A fork of the server writes the data out, and reads it back as the server would.
    let saved = ask(&["save"])? + &ask(&["bgsave"])?;
    while ask(&["info", "persistence"])?.contains("rdb_bgsave_in_progress:1") {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = fs::read_to_string(format!("/proc/{server}/status"))?;
    let most = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let most = most.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let persisted = ask(&["info", "persistence"])?;
    let child_is_well = persisted.contains("rdb_last_bgsave_status:ok");
    // Which keys the clients wrote is random; that the server's data are whole is not.
    let reloaded = ask(&["debug", "reload"])?;
    let answer = format!("{saved}{child_is_well} {reloaded}");
    Ok(Outcome {
        time,
        resident: most.ok_or("no VmHWM")? * 1024,
        answer: answer.into(),
    })
}

/// An empty directory with a short name, which goes when it is dropped.
pub struct EmptyDir(pub PathBuf);

impl EmptyDir {
    pub fn new() -> Result<EmptyDir> {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("um-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir)?;
        Ok(EmptyDir(dir))
    }
}

impl Drop for EmptyDir {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            let _ = writeln!(std::io::stderr(), "{}: {e}", self.0.display());
        }
    }
}
