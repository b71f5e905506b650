//! The columns of a kind of event, and its typed rows.

use super::kind::{FIELDS, Kind};
use super::page::{
    Alloc, Block, Cache, Call, Compaction, Fallback, Flags, Listed, MOST_FRAMES, Migration, Named,
    ORDERS, Page, Place, Reclaim, Slab,
};
use super::unreadable::Unreadable;
use crate::recording::{EventTable, FieldKind};
use unfrag_eras::Pfn;

/// The columns of a kind of event.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The kind.
    pub kind: Kind,
    name: &'a str,
    columns: [Option<Column<'a>>; FIELDS],
}

#[derive(Clone, Copy, Debug)]
struct Column<'a> {
    values: &'a [u64],
    strings: Option<&'a [String]>,
}

impl<'a> Table<'a> {
    /// The columns of a recording's table; `None` if its events are not read.
    pub fn of(table: &'a EventTable, strings: &'a [String]) -> Option<Table<'a>> {
        let kind = Kind::of(&table.name)?;
        let mut columns = [None; FIELDS];
        for (to, name) in columns.iter_mut().zip(kind.fields()) {
            let mut all = table.fields.iter().zip(&table.columns);
            *to = all
                .find(|(f, _)| f.name == *name)
                .map(|(field, values)| Column {
                    values,
                    strings: (field.kind == FieldKind::String).then_some(strings),
                });
        }
        Some(Table {
            kind,
            name: &table.name,
            columns,
        })
    }

    /// The number of a field, by its place in [`Kind::fields`].
    #[inline]
    fn number(&self, field: usize, row: usize) -> Option<u64> {
        let column = self.columns[field].as_ref()?;
        let value = *column.values.get(row)?;
        match column.strings {
            None => Some(value),
            Some(strings) => strings.get(value as usize)?.parse().ok(),
        }
    }

    /// A field without which the event says nothing.
    #[inline]
    fn needed(&self, field: usize, row: usize) -> Result<u64, Unreadable> {
        self.number(field, row).ok_or_else(|| self.lacks(field))
    }

    #[cold]
    fn lacks(&self, field: usize) -> Unreadable {
        Unreadable::Lacks {
            event: self.name.to_owned(),
            field: self.kind.fields()[field],
        }
    }

    /// The text of a field; `None` if it is a number.
    fn text(&self, field: usize, row: usize) -> Option<&'a str> {
        let column = self.columns[field].as_ref()?;
        let strings = column.strings?;
        let text = strings.get(*column.values.get(row)? as usize)?;
        Some(text.as_str())
    }

    /// A field that some recorders write by name.
    fn named(&self, field: usize, row: usize) -> Option<Named<'a>> {
        match self.columns[field].as_ref()?.strings {
            None => self.number(field, row).map(Named::Number),
            Some(_) => self
                .text(field, row)
                .filter(|t| !t.is_empty())
                .map(Named::Name),
        }
    }

    /// The first frame that the event names; `None` for that of a failed request. A failed request has frame -1 on the
    /// recorded kernel, of 32 or 64 bits; its text prints 0 or `(null)`. `spec: 10`
    #[inline]
    fn pfn(&self, row: usize) -> Result<Option<Pfn>, Unreadable> {
        const NONE_OF_32_BITS: u64 = u32::MAX as u64;
        match self.number(0, row) {
            Some(0 | u64::MAX | NONE_OF_32_BITS) => Ok(None),
            Some(pfn) if pfn < MOST_FRAMES => Ok(Some(Pfn(pfn))),
            Some(pfn) => Err(Unreadable::Frame(pfn)),
            None if self
                .text(0, row)
                .is_some_and(|t| matches!(t, "-1" | "(null)" | "(nil)")) =>
            {
                Ok(None)
            }
            None => Err(self.lacks(0)),
        }
    }

    #[inline]
    fn order(&self, row: usize) -> Result<u8, Unreadable> {
        match self.needed(1, row)? {
            order if order < ORDERS.into() => Ok(order as u8),
            order => Err(Unreadable::Order {
                pfn: self.number(0, row).unwrap_or(0),
                order,
            }),
        }
    }

    /// A block that there is.
    #[inline]
    fn block(&self, row: usize, order: u8) -> Result<Block, Unreadable> {
        match self.needed(0, row)? {
            pfn if pfn < MOST_FRAMES => Ok(Block {
                pfn: Pfn(pfn),
                order,
            }),
            pfn => Err(Unreadable::Frame(pfn)),
        }
    }

    #[inline]
    fn listed(&self, row: usize) -> Result<Listed, Unreadable> {
        let order = self.order(row)?;
        Ok(Listed {
            block: self.pfn(row)?.map(|pfn| Block { pfn, order }),
            migratetype: self.number(2, row),
        })
    }

    /// Order of a block of page cache: kernels before folios had single pages there.
    fn cache_order(&self, field: usize, row: usize) -> Result<u8, Unreadable> {
        match self.number(field, row) {
            None => Ok(0),
            Some(order) if order < ORDERS.into() => Ok(order as u8),
            Some(order) => Err(Unreadable::Order {
                pfn: self.number(0, row).unwrap_or(0),
                order,
            }),
        }
    }

    /// What an event says.
    ///
    /// # Errors
    /// If it lacks a field without which it says nothing, or names what no kernel has.
    #[inline]
    pub fn page(&self, row: usize) -> Result<Page<'a>, Unreadable> {
        let number = |field| self.number(field, row);
        Ok(match self.kind {
            Kind::Alloc => Page::Alloc(Alloc {
                pfn: self.pfn(row)?,
                order: self.order(row)?,
                gfp: number(2).map(Flags),
                migratetype: number(3),
            }),
            Kind::Free => Page::Free(self.block(row, self.order(row)?)?),
            Kind::Refill => Page::Refill(self.listed(row)?),
            Kind::Drain => Page::Drain(self.listed(row)?),
            Kind::Fallback => Page::Fallback(Fallback {
                order: number(0),
                fallback_order: number(1),
                wanted: number(2),
                from: number(3),
                ownership: number(4),
                pageblock_order: number(5),
            }),
            Kind::SetMigration => Page::Migration(Migration::Leaves {
                addr: self.needed(0, row)?,
                pte: self.needed(1, row)?,
            }),
            Kind::RemoveMigration => Page::Migration(Migration::Arrives {
                addr: self.needed(0, row)?,
                pte: self.needed(1, row)?,
            }),
            Kind::WakeupKswapd => Page::Reclaim(Reclaim::Asked {
                node: number(0),
                order: number(1),
                gfp: number(2).map(Flags),
            }),
            Kind::KswapdWake => Page::Reclaim(Reclaim::Wakes {
                node: number(0),
                order: number(1),
            }),
            Kind::KswapdSleep => Page::Reclaim(Reclaim::Sleeps { node: number(0) }),
            Kind::ReclaimBegin => Page::Reclaim(Reclaim::Begin { order: number(0) }),
            Kind::ReclaimEnd => Page::Reclaim(Reclaim::End {
                reclaimed: number(0),
            }),
            Kind::CacheAdd => {
                let place = match (number(1), number(2), number(3)) {
                    (Some(inode), Some(device), Some(index)) => Some(Place {
                        device,
                        inode,
                        index,
                    }),
                    _ => None,
                };
                let block = self.block(row, self.cache_order(4, row)?)?;
                Page::Cache(Cache::Add { block, place })
            }
            Kind::CacheDelete => Page::Cache(Cache::Delete {
                block: self.block(row, self.cache_order(1, row)?)?,
            }),
            Kind::Object | Kind::Kmalloc => Page::Slab(Slab::Alloc {
                by_size: self.kind == Kind::Kmalloc,
                size: number(3),
                cache: self.text(5, row),
                call: match (number(0), number(1), number(2), number(4)) {
                    (Some(ptr), Some(site), Some(bytes), Some(gfp)) => Some(Call {
                        ptr,
                        site,
                        bytes,
                        gfp: Flags(gfp),
                    }),
                    _ => None,
                },
            }),
            Kind::ObjectFree => Page::Slab(Slab::Free {
                ptr: self.needed(0, row)?,
                cache: self.text(1, row),
            }),
            Kind::CollapseScan => Page::CollapseScan,
            Kind::Switch => Page::Switch {
                from: self.needed(0, row)?,
                to: self.needed(1, row)?,
            },
            Kind::Stack => Page::Stack(self.text(0, row)),
            _ => Page::Compaction(self.compaction(row)),
        })
    }

    fn compaction(&self, row: usize) -> Compaction<'a> {
        let number = |field| self.number(field, row);
        let named = |field| self.named(field, row);
        match self.kind {
            Kind::CompactTry => Compaction::Try {
                order: number(0),
                gfp: number(1).map(Flags),
            },
            Kind::CompactBegin => Compaction::Begin {
                zone_start: number(0),
            },
            Kind::CompactEnd => Compaction::End {
                status: named(2),
                migrate: number(0),
                free: number(1),
            },
            Kind::Suitable => Compaction::Suitable {
                order: number(0),
                result: named(1),
            },
            Kind::Finished => Compaction::Finished {
                order: number(0),
                result: named(1),
            },
            Kind::IsolateMigrate => Compaction::IsolateMigrate {
                scanned: number(0),
                taken: number(1),
            },
            Kind::IsolateFree => Compaction::IsolateFree {
                scanned: number(0),
                taken: number(1),
            },
            Kind::Migrated => Compaction::Migrated {
                moved: number(0),
                failed: number(1),
            },
            Kind::Deferred => Compaction::Deferred { order: number(0) },
            Kind::WakeupKcompactd => Compaction::Asked {
                node: number(0),
                order: number(1),
            },
            Kind::KcompactdWake => Compaction::KcompactdWake {
                node: number(0),
                order: number(1),
            },
            _ => Compaction::KcompactdSleep { node: number(0) },
        }
    }
}
