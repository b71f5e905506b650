//! The text of a `freelists` file: one record a line.
//!
//! Each zone begins with its `zone` line. A CPU's lists follow its `pcp` line, an order's lists its
//! `nr_free` line. Pageblocks come last.

use std::fmt::Write;

use super::*;
use crate::error::Error;
use crate::procfs::scan::Scan;

impl FreeLists {
    /// Reads the text of a `freelists` file.
    ///
    /// # Errors
    /// Names the byte at which a record is unknown, incomplete, or belongs to a zone, CPU or order
    /// that has not been announced before it.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let mut scan = Scan::new("freelists", text);
        let mut all = Self::default();
        while !scan.is_at_end() {
            let at = scan.offset();
            match scan.word(b":")? {
                "zone" => all.zones.push(parse_zone(&mut scan)?),
                "compact" => {
                    let zone = zone_of(&mut all, &mut scan)?;
                    zone.compact = parse_compact(&mut scan)?;
                }
                "pcp" => {
                    let zone = zone_of(&mut all, &mut scan)?;
                    zone.pcps.push(parse_pcp(&mut scan)?);
                }
                "pcplist" => {
                    let zone = zone_of(&mut all, &mut scan)?;
                    let cpu: u32 = scan.labelled("cpu")?;
                    let pcp = zone.pcps.last_mut().filter(|p| p.cpu == cpu);
                    let pcp = pcp.ok_or_else(|| {
                        scan.error_at(at, format!("list of CPU {cpu} without its `pcp` line"))
                    })?;
                    pcp.lists.push(parse_pcp_list(&mut scan)?);
                }
                "nr_free" => {
                    let zone = zone_of(&mut all, &mut scan)?;
                    let order = scan.labelled("order")?;
                    zone.orders.push(FreeArea {
                        order,
                        nr_free: scan.number()?,
                        lists: vec![],
                    });
                }
                "free" => {
                    let zone = zone_of(&mut all, &mut scan)?;
                    let order: u8 = scan.labelled("order")?;
                    let area = zone.orders.last_mut().filter(|a| a.order == order);
                    let area = area.ok_or_else(|| {
                        scan.error_at(
                            at,
                            format!("list of order {order} without its `nr_free` line"),
                        )
                    })?;
                    let migratetype = scan.labelled("mt")?;
                    let (pfns, torn) = parse_pfns(&mut scan)?;
                    area.lists.push(FreeList {
                        migratetype,
                        pfns,
                        torn,
                    });
                }
                "pageblocks" => all.pageblocks.push(parse_pageblocks(&mut scan)?),
                other => return Err(scan.error_at(at, format!("unknown record {other:?}"))),
            }
            scan.line_end()?;
        }
        Ok(all)
    }

    /// The text of the file.
    pub fn write(&self) -> String {
        let mut out = String::new();
        self.write_to(&mut out).expect("a String takes everything");
        out
    }

    fn write_to(&self, out: &mut String) -> std::fmt::Result {
        for zone in &self.zones {
            write_zone(out, zone)?;
        }
        for run in &self.pageblocks {
            write!(out, "pageblocks start_pfn {} mt:", run.start_pfn)?;
            run.types.iter().try_for_each(|t| write!(out, "{t}"))?;
            out.push_str(" skip:");
            run.skip
                .iter()
                .for_each(|&s| out.push(if s { '1' } else { '0' }));
            out.push('\n');
        }
        Ok(())
    }
}

/// Passes `zone NAME` and gives that zone, which must be the last one announced.
fn zone_of<'a>(all: &'a mut FreeLists, scan: &mut Scan) -> Result<&'a mut Zone, Error> {
    scan.expect("zone")?;
    scan.spaces();
    let at = scan.offset();
    let name = scan.word(b"")?;
    let zone = all.zones.last_mut().filter(|z| z.name == name);
    zone.ok_or_else(|| {
        scan.error_at(
            at,
            format!("record of zone {name:?} without its `zone` line"),
        )
    })
}

fn parse_zone(scan: &mut Scan) -> Result<Zone, Error> {
    Ok(Zone {
        name: scan.word(b"")?.to_owned(),
        start_pfn: scan.labelled("start_pfn")?,
        spanned: scan.labelled("spanned")?,
        present: scan.labelled("present")?,
        managed: scan.labelled("managed")?,
        watermarks: Watermarks {
            min: scan.labelled("wmark_min")?,
            low: scan.labelled("low")?,
            high: scan.labelled("high")?,
            promo: scan.labelled("promo")?,
        },
        boost: scan.labelled("boost")?,
        highatomic: scan.labelled("highatomic")?,
        ..Zone::default()
    })
}

fn parse_compact(scan: &mut Scan) -> Result<Compact, Error> {
    Ok(Compact {
        cached_free_pfn: scan.labelled("cached_free_pfn")?,
        cached_migrate_pfn_async: scan.labelled("cached_migrate_pfn_async")?,
        cached_migrate_pfn_sync: scan.labelled("cached_migrate_pfn_sync")?,
        init_migrate_pfn: scan.labelled("init_migrate_pfn")?,
        init_free_pfn: scan.labelled("init_free_pfn")?,
        considered: scan.labelled("considered")?,
        defer_shift: scan.labelled("defer_shift")?,
        order_failed: {
            scan.expect("order_failed")?;
            scan.signed()?
        },
    })
}

fn parse_pcp(scan: &mut Scan) -> Result<Pcp, Error> {
    fn signed<T: TryFrom<i64>>(scan: &mut Scan, name: &str) -> Result<T, Error> {
        scan.expect(name)?;
        scan.signed()
    }
    Ok(Pcp {
        cpu: scan.labelled("cpu")?,
        count: signed(scan, "count")?,
        high: signed(scan, "high")?,
        batch: signed(scan, "batch")?,
        free_factor: signed(scan, "free_factor")?,
        expire: signed(scan, "expire")?,
        lists: vec![],
    })
}

fn parse_pcp_list(scan: &mut Scan) -> Result<PcpList, Error> {
    let order = scan.labelled("order")?;
    let kind = if scan.accept("idx") {
        PcpKind::Thp(scan.number()?)
    } else {
        PcpKind::MigrateType(scan.labelled("mt")?)
    };
    let (pfns, torn) = parse_pfns(scan)?;
    Ok(PcpList {
        order,
        kind,
        pfns,
        torn,
    })
}

fn parse_pfns(scan: &mut Scan) -> Result<(Vec<u64>, Option<Torn>), Error> {
    scan.expect(":")?;
    let mut pfns = vec![];
    while !scan.is_at_line_end() {
        if scan.accept("!") {
            let at = scan.offset();
            let torn = match scan.word(b"")? {
                "BAD" => Torn::Bad,
                "RACE" => Torn::Race,
                "CUT" => Torn::Cut,
                other => return Err(scan.error_at(at, format!("unknown mark {other:?}"))),
            };
            return Ok((pfns, Some(torn)));
        }
        pfns.push(scan.number()?);
    }
    Ok((pfns, None))
}

fn parse_pageblocks(scan: &mut Scan) -> Result<PageblockRun, Error> {
    let start_pfn = scan.labelled("start_pfn")?;
    let types = digits(scan, "mt:", 7)?;
    let skip: Vec<bool> = digits(scan, "skip:", 1)?.iter().map(|&d| d == 1).collect();
    if types.len() != skip.len() {
        return Err(scan.error(format!(
            "{} types but {} skip bits",
            types.len(),
            skip.len()
        )));
    }
    Ok(PageblockRun {
        start_pfn,
        types,
        skip,
    })
}

/// One number a digit, each at most `max`.
fn digits(scan: &mut Scan, label: &str, max: u8) -> Result<Vec<u8>, Error> {
    scan.expect(label)?;
    let at = scan.offset();
    let digit = |(i, b): (usize, u8)| match b.wrapping_sub(b'0') {
        d if d <= max => Ok(d),
        _ => Err((i, b)),
    };
    let digits: Result<Vec<u8>, _> = scan.word(b"")?.bytes().enumerate().map(digit).collect();
    digits.map_err(|(i, b)| {
        scan.error_at(
            at + i,
            format!("expected a digit up to {max}, found {:?}", b as char),
        )
    })
}

fn write_zone(out: &mut String, zone: &Zone) -> std::fmt::Result {
    let (n, w, c) = (&zone.name, &zone.watermarks, &zone.compact);
    write!(
        out,
        "zone {n} start_pfn {} spanned {}",
        zone.start_pfn, zone.spanned
    )?;
    write!(out, " present {} managed {}", zone.present, zone.managed)?;
    write!(
        out,
        " wmark_min {} low {} high {} promo {}",
        w.min, w.low, w.high, w.promo
    )?;
    writeln!(out, " boost {} highatomic {}", zone.boost, zone.highatomic)?;
    write!(
        out,
        "compact zone {n} cached_free_pfn {}",
        c.cached_free_pfn
    )?;
    write!(
        out,
        " cached_migrate_pfn_async {}",
        c.cached_migrate_pfn_async
    )?;
    write!(
        out,
        " cached_migrate_pfn_sync {}",
        c.cached_migrate_pfn_sync
    )?;
    write!(
        out,
        " init_migrate_pfn {} init_free_pfn {}",
        c.init_migrate_pfn, c.init_free_pfn
    )?;
    write!(
        out,
        " considered {} defer_shift {}",
        c.considered, c.defer_shift
    )?;
    writeln!(out, " order_failed {}", c.order_failed)?;
    for p in &zone.pcps {
        write!(
            out,
            "pcp zone {n} cpu {} count {} high {}",
            p.cpu, p.count, p.high
        )?;
        write!(out, " batch {} free_factor {}", p.batch, p.free_factor)?;
        writeln!(out, " expire {}", p.expire)?;
        for list in &p.lists {
            write!(out, "pcplist zone {n} cpu {} order {}", p.cpu, list.order)?;
            match list.kind {
                PcpKind::MigrateType(mt) => write!(out, " mt {mt}:")?,
                PcpKind::Thp(idx) => write!(out, " idx {idx}:")?,
            }
            write_pfns(out, &list.pfns, list.torn)?;
        }
    }
    for area in &zone.orders {
        writeln!(
            out,
            "nr_free zone {n} order {} {}",
            area.order, area.nr_free
        )?;
        for list in &area.lists {
            write!(
                out,
                "free zone {n} order {} mt {}:",
                area.order, list.migratetype
            )?;
            write_pfns(out, &list.pfns, list.torn)?;
        }
    }
    Ok(())
}

fn write_pfns(out: &mut String, pfns: &[u64], torn: Option<Torn>) -> std::fmt::Result {
    pfns.iter().try_for_each(|pfn| write!(out, " {pfn}"))?;
    out.push_str(match torn {
        None => "\n",
        Some(Torn::Bad) => " !BAD\n",
        Some(Torn::Race) => " !RACE\n",
        Some(Torn::Cut) => " !CUT\n",
    });
    Ok(())
}
