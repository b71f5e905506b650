//! A writer of small `trace.dat` files, formats 6 and 7, both endiannesses, after trace-cmd.dat(5).

/// How a file of format 7 is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    None,
    Zstd,
    Zlib,
}

/// A file to be written.
#[derive(Clone)]
pub struct Dat {
    pub big_endian: bool,
    pub cmdlines: Vec<u8>,
    pub options: Vec<(u16, Vec<u8>)>,
    pub buffers: Vec<Buffer>,
}

/// A buffer: its name, and the sub-buffers of each CPU.
#[derive(Clone)]
pub struct Buffer {
    pub name: &'static str,
    pub cpus: Vec<Vec<u8>>,
}

/// An entry of the ring buffer.
pub enum Entry {
    /// Time since the entry before, and the record.
    Record(u32, Vec<u8>),
    /// Time since the entry before, and the record, whose length has a word of its own.
    Long(u32, Vec<u8>),
    /// An extension of the time.
    Extend(u64),
    /// An absolute time.
    Stamp(u64),
    /// A discarded record of so many bytes.
    Discarded(u32, u32),
    /// Padding up to the end.
    Padding,
}

pub const PAGE: usize = 4096;
const HEAD: usize = 16;

/// `events/header_page` of a 64-bit kernel.
pub const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\
    \ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\tpadding     : type == 29\n\
    \ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
const COMMON: &str = "format:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// Id of `kmem:mm_page_alloc`.
pub const ALLOC: u16 = 10;
/// Id of `kmem:kmem_cache_free`.
pub const CACHE_FREE: u16 = 11;

/// The format files of the two events.
pub fn formats() -> Vec<String> {
    vec![
        format!(
            "name: mm_page_alloc\nID: {ALLOC}\n{COMMON}\
             \tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n\
             \tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;\n\
             \tfield:int migratetype;\toffset:32;\tsize:4;\tsigned:1;\n\n\
             print fmt: \"pfn=0x%lx order=%d\", REC->pfn, REC->order\n"
        ),
        format!(
            "name: kmem_cache_free\nID: {CACHE_FREE}\n{COMMON}\
             \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:__data_loc char[] name;\toffset:16;\tsize:4;\tsigned:0;\n\n\
             print fmt: \"ptr=%p name=%s\", REC->ptr, __get_str(name)\n"
        ),
    ]
}

impl Dat {
    /// A file with one buffer.
    pub fn new(big_endian: bool, cpus: Vec<Vec<u8>>) -> Self {
        Dat {
            big_endian,
            cmdlines: b"7 sh\n8 two words\n".to_vec(),
            options: vec![
                (5, b"Linux host 6.1.0-test x86_64\0".to_vec()),
                (4, b"local global [mono]\n\0".to_vec()),
            ],
            buffers: vec![Buffer { name: "", cpus }],
        }
    }
    fn u16(&self, v: u16) -> [u8; 2] {
        if self.big_endian {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
    pub fn u32(&self, v: u32) -> [u8; 4] {
        if self.big_endian {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
    pub fn u64(&self, v: u64) -> [u8; 8] {
        if self.big_endian {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    }
    fn start(&self, version: &str) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing".to_vec();
        out.extend(version.as_bytes());
        out.extend([0, self.big_endian.into(), 8]);
        out.extend(self.u32(PAGE as u32));
        out
    }
    fn headers(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, text) in [
            ("header_page\0", HEADER_PAGE),
            ("header_event\0", HEADER_EVENT),
        ] {
            out.extend(name.as_bytes());
            out.extend(self.u64(text.len() as u64));
            out.extend(text.as_bytes());
        }
        out
    }
    fn events(&self) -> Vec<u8> {
        let formats = formats();
        let mut out = self.u32(1).to_vec();
        out.extend(b"kmem\0");
        out.extend(self.u32(formats.len() as u32));
        for text in formats {
            out.extend(self.u64(text.len() as u64));
            out.extend(text.as_bytes());
        }
        out
    }
    fn saved_cmdlines(&self) -> Vec<u8> {
        let mut out = self.u64(self.cmdlines.len() as u64).to_vec();
        out.extend(&self.cmdlines);
        out
    }
    fn option(&self, id: u16, value: &[u8]) -> Vec<u8> {
        let mut out = self.u16(id).to_vec();
        out.extend(self.u32(value.len() as u32));
        out.extend(value);
        out
    }
    /// Format 6, up to the kind of data.
    fn v6_head(&self) -> Vec<u8> {
        let mut out = self.start("6");
        out.extend(self.headers());
        out.extend(self.u32(0));
        out.extend(self.events());
        out.extend(self.u32(0));
        out.extend(self.u32(0));
        out.extend(self.saved_cmdlines());
        out.extend(self.u32(self.buffers[0].cpus.len() as u32));
        out.extend(b"options  \0");
        for (id, value) in &self.options {
            out.extend(self.option(*id, value));
        }
        out.extend(self.u16(0));
        out
    }
    /// Format 6; only the first buffer.
    pub fn v6(&self) -> Vec<u8> {
        let mut out = self.v6_head();
        out.extend(b"flyrecord\0");
        let clock = b"[mono]";
        let cpus = &self.buffers[0].cpus;
        let table_end = out.len() + 16 * cpus.len() + 8 + clock.len();
        let mut at = table_end.next_multiple_of(PAGE);
        let first = at;
        for cpu in cpus {
            out.extend(self.u64(at as u64));
            out.extend(self.u64(cpu.len() as u64));
            at += cpu.len();
        }
        out.extend(self.u64(clock.len() as u64));
        out.extend(clock);
        out.resize(first, 0);
        for cpu in cpus {
            out.extend(cpu);
        }
        out
    }
    /// Format 6 with the text of the `trace` file.
    pub fn v6_latency(&self, text: &str) -> Vec<u8> {
        let mut out = self.v6_head();
        out.extend(b"latency  \0");
        out.extend(text.as_bytes());
        out
    }
    fn pack(packing: Packing, data: &[u8]) -> Vec<u8> {
        match packing {
            Packing::None => data.to_vec(),
            Packing::Zstd => zstd::bulk::compress(data, 3).expect("zstd compresses"),
            Packing::Zlib => {
                let level = flate2::Compression::default();
                let mut z = flate2::write::ZlibEncoder::new(Vec::new(), level);
                std::io::Write::write_all(&mut z, data).expect("a vector takes it");
                z.finish().expect("a vector takes it")
            }
        }
    }
    fn section(&self, id: u16, packing: Packing, content: &[u8]) -> Vec<u8> {
        let mut out = self.u16(id).to_vec();
        out.extend(self.u16((packing != Packing::None).into()));
        out.extend(self.u32(0));
        let body = match packing {
            Packing::None => content.to_vec(),
            _ => {
                let packed = Self::pack(packing, content);
                let mut body = self.u32(packed.len() as u32).to_vec();
                body.extend(self.u32(content.len() as u32));
                body.extend(packed);
                body
            }
        };
        out.extend(self.u64(body.len() as u64));
        out.extend(body);
        out
    }
    /// Format 7, all buffers.
    pub fn v7(&self, packing: Packing) -> Vec<u8> {
        let mut out = self.start("7");
        let name: &[u8] = match packing {
            Packing::None => b"none\0\0",
            Packing::Zstd => b"zstd\x001.5.4\0",
            Packing::Zlib => b"zlib\x001.3\0",
        };
        out.extend(name);
        let options_at = out.len();
        out.extend(self.u64(0));
        let mut options = Vec::new();
        for (id, content) in [
            (16, self.headers()),
            (17, self.u32(0).to_vec()),
            (18, self.events()),
            (21, self.saved_cmdlines()),
        ] {
            options.extend(self.option(id, &self.u64(out.len() as u64)));
            out.extend(self.section(id, packing, &content));
        }
        for (id, value) in &self.options {
            options.extend(self.option(*id, value));
        }
        for buffer in &self.buffers {
            let section = out.len();
            let mut value = self.u64(section as u64).to_vec();
            value.extend(buffer.name.as_bytes());
            value.extend(b"\0mono\0");
            value.extend(self.u32(PAGE as u32));
            value.extend(self.u32(buffer.cpus.len() as u32));
            out.extend(self.u16(3));
            out.extend(self.u16((packing != Packing::None).into()));
            out.extend(self.u32(0));
            let size_at = out.len();
            out.extend(self.u64(0));
            for (n, cpu) in buffer.cpus.iter().enumerate() {
                out.resize(out.len().next_multiple_of(64), 0);
                value.extend(self.u32(n as u32));
                value.extend(self.u64(out.len() as u64));
                let chunks: Vec<&[u8]> = cpu.chunks(PAGE).collect();
                let start = out.len();
                match packing {
                    Packing::None => out.extend(cpu),
                    _ => {
                        out.extend(self.u32(chunks.len() as u32));
                        for chunk in chunks {
                            let packed = Self::pack(packing, chunk);
                            out.extend(self.u32(packed.len() as u32));
                            out.extend(self.u32(chunk.len() as u32));
                            out.extend(packed);
                        }
                    }
                }
                // As trace-cmd does, without the number of chunks.
                let count = if packing == Packing::None { 0 } else { 4 };
                value.extend(self.u64((out.len() - start - count) as u64));
            }
            let size = (out.len() - size_at - 8) as u64;
            let size = self.u64(size);
            out[size_at..size_at + 8].copy_from_slice(&size);
            options.extend(self.option(3, &value));
        }
        options.extend(self.option(0, &self.u64(0)));
        let at = self.u64(out.len() as u64);
        out[options_at..options_at + 8].copy_from_slice(&at);
        out.extend(self.section(0, Packing::None, &options));
        out
    }
    /// A sub-buffer; `lost` as the kernel flags it.
    pub fn page(
        big_endian: bool,
        time: u64,
        lost: Option<Option<u64>>,
        entries: &[Entry],
    ) -> Vec<u8> {
        let me = Dat::new(big_endian, Vec::new());
        let mut data = Vec::new();
        let head = |kind: u32, delta: u32| {
            me.u32(if big_endian {
                kind << 27 | delta
            } else {
                delta << 5 | kind
            })
        };
        for entry in entries {
            match entry {
                Entry::Record(delta, record) => {
                    assert!(record.len() % 4 == 0 && record.len() <= 112, "use Long");
                    data.extend(head(record.len() as u32 / 4, *delta));
                    data.extend(record);
                }
                Entry::Long(delta, record) => {
                    data.extend(head(0, *delta));
                    data.extend(me.u32(record.len() as u32 + 4));
                    data.extend(record);
                    data.resize(data.len().next_multiple_of(4), 0);
                }
                Entry::Extend(time) => {
                    data.extend(head(30, (time & 0x7ff_ffff) as u32));
                    data.extend(me.u32((time >> 27) as u32));
                }
                Entry::Stamp(time) => {
                    data.extend(head(31, (time & 0x7ff_ffff) as u32));
                    data.extend(me.u32((time >> 27) as u32));
                }
                Entry::Discarded(delta, bytes) => {
                    data.extend(head(29, *delta));
                    data.extend(me.u32(*bytes));
                    data.extend(vec![0xaa; *bytes as usize - 4]);
                }
                Entry::Padding => {
                    data.extend(head(29, 0));
                    data.extend([0xff; 12]);
                }
            }
        }
        let mut commit = data.len() as u64;
        match lost {
            None => {}
            Some(None) => commit |= 1 << 31,
            Some(Some(_)) => commit |= 3 << 30,
        }
        let mut page = me.u64(time).to_vec();
        page.extend(me.u64(commit));
        assert_eq!(page.len(), HEAD);
        page.extend(data);
        if let Some(Some(count)) = lost {
            page.extend(me.u64(count));
        }
        assert!(page.len() <= PAGE, "too much for a sub-buffer");
        page.resize(PAGE, 0);
        page
    }
    /// A record of `kmem:mm_page_alloc`.
    pub fn alloc(big_endian: bool, pid: i32, pfn: u64, migratetype: i32) -> Vec<u8> {
        let me = Dat::new(big_endian, Vec::new());
        let mut r = me.u16(ALLOC).to_vec();
        r.extend([1, 2]);
        r.extend(me.u32(pid as u32));
        r.extend(me.u64(pfn));
        r.extend(me.u32(3));
        r.extend([0; 4]);
        r.extend(me.u64(0xcc0));
        r.extend(me.u32(migratetype as u32));
        r
    }
    /// A record of `kmem:kmem_cache_free`.
    pub fn cache_free(big_endian: bool, pid: i32, ptr: u64, name: &str) -> Vec<u8> {
        let me = Dat::new(big_endian, Vec::new());
        let mut r = me.u16(CACHE_FREE).to_vec();
        r.extend([0, 0]);
        r.extend(me.u32(pid as u32));
        r.extend(me.u64(ptr));
        r.extend(me.u32((name.len() as u32 + 1) << 16 | 20));
        r.extend(name.as_bytes());
        r.push(0);
        r.resize(r.len().next_multiple_of(4), 0);
        r
    }
}
