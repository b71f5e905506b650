use super::*;

/// An operation of any kind, from a number.
fn op(n: u64) -> Op {
    let (pfn, number) = (
        (n as u32).wrapping_mul(77_777).into(),
        (n as u32 ^ 0x55).into(),
    );
    let order = (n / 14 % 11) as u8;
    let gfp = Gfp::from_bits_retain((n as u32).wrapping_mul(0x9e37) & 0x3ff).into();
    let node = NodeId((n % 200) as u8);
    let action = match n % 14 {
        0 => Action::Alloc { order, pfn, gfp },
        1 => Action::AllocRaced { order, pfn, gfp },
        2 => Action::AllocFailed {
            order: (n % 256) as u8,
            gfp,
        },
        3 => Action::Free { order, pfn },
        4 => Action::FreeReclaimed { order, pfn },
        5 => Action::FreeUnseen { order, pfn },
        6 => Action::Stack { index: number },
        7 => Action::AllocUnseen { pages: number },
        8 => Action::Moved {
            order,
            pfn,
            to: number,
        },
        9 => Action::MovedAway { order, pfn, number },
        10 => Action::MovedTo { pfn, number },
        11 => Action::KswapdBegins { node },
        12 => Action::KswapdEnds { node },
        _ => Action::DrainAll,
    };
    Op {
        // Now and then seconds without anything, and now and then a little back.
        time: 1000 + n * 500 + n / 3000 * 5_000_000_000 - n % 5 * 600 / 2,
        task: (n % 777) as u32,
        cpu: (n % 300) as u16,
        action,
    }
}

fn all(n: u64) -> Vec<Op> {
    (0..n).map(op).collect()
}

/// In rooms without memory, with some, and with enough.
fn stored(ops: &[Op]) -> Vec<Ops> {
    [0, 200_000, u64::MAX]
        .map(|budget| {
            let mut stored = Ops::new(&Arc::new(Room::new(budget)));
            ops.iter().for_each(|op| stored.push(op));
            stored.finish().unwrap();
            stored
        })
        .into()
}

#[test]
fn operations_come_out_as_they_were_put_in() {
    let ops = all(20_000);
    for stored in stored(&ops) {
        assert_eq!(stored.len(), ops.len());
        assert!(stored.to_vec().unwrap() == ops);
        let mut back = vec![];
        stored.each_back(|i, op| back.push((i, *op))).unwrap();
        assert!(back.iter().rev().map(|b| b.0).eq(0..ops.len()));
        assert!(back.iter().rev().map(|b| b.1).eq(ops.iter().copied()));
    }
}

#[test]
fn a_range_is_given_with_its_numbers() {
    let ops = all(10_000);
    for stored in stored(&ops) {
        for range in [
            0..0,
            0..1,
            4000..4200,
            9999..10_000,
            5..10_000,
            9_000..20_000,
        ] {
            let mut seen = vec![];
            stored
                .each(range.clone(), |i, op| seen.push((i, *op)))
                .unwrap();
            let wanted = (range.start..range.end.min(ops.len())).map(|i| (i, ops[i]));
            assert!(wanted.eq(seen), "{range:?}");
        }
        let (late, early) = (5000, 200);
        assert!(stored.find(late..early, |_, _| true).unwrap().is_none());
        let found = stored.find(100..10_000, |_, op| op.task == 5).unwrap();
        assert_eq!(found.map(|f| f.0), (100..).find(|&i| ops[i].task == 5));
    }
}

#[test]
fn a_time_finds_the_first_operation_at_or_after_it() {
    let mut ops = all(10_000);
    ops.sort_by_key(|op| op.time);
    for stored in stored(&ops) {
        for i in (0..ops.len()).step_by(97) {
            assert_eq!(stored.time(i).unwrap(), Some(ops[i].time));
            for time in [ops[i].time - 1, ops[i].time, ops[i].time + 1] {
                let wanted = ops.partition_point(|op| op.time < time);
                assert_eq!(stored.at(time).unwrap(), wanted, "{time}");
            }
        }
        assert_eq!(stored.at(u64::MAX).unwrap(), ops.len());
        assert_eq!(stored.at(0).unwrap(), 0);
        assert_eq!(stored.time(ops.len()).unwrap(), None);
    }
}

#[test]
fn operations_that_are_not_stored_yet_have_their_times_too() {
    let mut ops = all(5000);
    ops.sort_by_key(|op| op.time);
    let mut stored = Ops::default();
    for (i, op) in ops.iter().enumerate() {
        stored.push(op);
        assert_eq!(stored.time(i).unwrap(), Some(op.time));
        assert_eq!(stored.at(op.time + 1).unwrap(), i + 1);
        assert_eq!(stored.at(0).unwrap(), 0);
    }
}

#[test]
fn operations_are_put_in_between_others() {
    let ops = all(9000);
    let inserts: Vec<(usize, Op)> = [8999, 0, 4100, 4100, 9000, 20_000, 4095]
        .iter()
        .enumerate()
        .map(|(i, &at)| (at, op(1_000_000 + i as u64)))
        .collect();
    let mut sorted = inserts.clone();
    sorted.sort_by_key(|i| i.0);
    let mut wanted = vec![];
    for i in 0..=ops.len() {
        let here = sorted.iter().filter(|s| s.0.min(ops.len()) == i);
        wanted.extend(here.map(|s| s.1));
        wanted.extend(ops.get(i));
    }
    for mut stored in stored(&ops) {
        stored.insert(inserts.clone()).unwrap();
        assert!(stored.to_vec().unwrap() == wanted);
        assert_eq!(stored.len(), wanted.len());
        stored.insert(vec![]).unwrap();
        assert!(stored.to_vec().unwrap() == wanted);
    }
}
