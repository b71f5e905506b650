//! Blocks of bytes, in memory up to a budget and in an unnamed file beyond.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use unfrag_linux::{no_room, output};

/// The memory that stores share.
#[derive(Debug)]
pub struct Room {
    budget: u64,
    used: AtomicU64,
}

impl Room {
    /// Room for so many bytes.
    pub fn new(budget: u64) -> Room {
        Room {
            budget,
            used: AtomicU64::new(0),
        }
    }

    /// Takes memory, if there is enough.
    fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.budget);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new(u64::MAX)
    }
}

/// Where a block is.
#[derive(Debug)]
enum Block {
    Memory(Box<[u8]>),
    File { at: u64, bytes: usize },
    Removed,
}

/// Blocks of bytes, by number.
#[derive(Debug, Default)]
pub struct Store {
    room: Arc<Room>,
    blocks: Vec<Block>,
    file: Option<File>,
    end: u64,
}

impl Store {
    /// An empty store.
    pub fn new(room: &Arc<Room>) -> Store {
        Store {
            room: room.clone(),
            blocks: vec![],
            file: None,
            end: 0,
        }
    }

    /// The room that it shares.
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Adds a block and gives its number.
    ///
    /// # Errors
    /// If there is no room for it in a file.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = bytes.len() as u64;
        let block = if self.room.take(size) {
            Block::Memory(bytes.into())
        } else {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(output::unnamed()?),
            };
            let end = self.end + size;
            file.write_all_at(bytes, self.end)
                .map_err(|e| no_room::temporary(e, Some(end)))?;
            let at = self.end;
            self.end = end;
            Block::File {
                at,
                bytes: bytes.len(),
            }
        };
        self.blocks.push(block);
        Ok(self.blocks.len() - 1)
    }

    /// A block's bytes; `buffer` holds them if they come from a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn get<'a>(&'a self, number: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        match (&self.blocks[number], &self.file) {
            (Block::Memory(bytes), _) => Ok(bytes),
            (&Block::File { at, bytes }, Some(file)) => {
                buffer.resize(bytes, 0);
                file.read_exact_at(buffer, at)?;
                Ok(buffer)
            }
            _ => Ok(&[]),
        }
    }

    /// Forgets a block; the numbers of the others stay.
    pub fn remove(&mut self, number: usize) {
        let removed = std::mem::replace(&mut self.blocks[number], Block::Removed);
        if let Block::Memory(bytes) = removed {
            self.room.give_back(bytes.len() as u64);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        for block in &self.blocks {
            if let Block::Memory(bytes) = block {
                self.room.give_back(bytes.len() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_budget_is_in_a_file_and_reads_the_same() {
        let room = Arc::new(Room::new(25));
        let mut store = Store::new(&room);
        for i in 0..6u8 {
            assert_eq!(store.push(&[i; 10]).unwrap(), usize::from(i));
        }
        let mut buffer = vec![];
        for i in 0..6u8 {
            assert_eq!(store.get(i.into(), &mut buffer).unwrap(), [i; 10]);
        }
        let in_memory = |s: &Store| {
            s.blocks
                .iter()
                .filter(|b| matches!(b, Block::Memory(_)))
                .count()
        };
        assert_eq!(in_memory(&store), 2);
        store.remove(0);
        store.push(&[7; 10]).unwrap();
        assert_eq!(in_memory(&store), 2, "a removed block makes room");
        drop(store);
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }
}
