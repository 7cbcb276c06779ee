//! Pages that follow the queries: what is written of them, and the bus that they come by.

use super::follower::COPY_SHARE;
use super::*;
use crate::cache::{ListPages, ReadRates};
use crate::files::Provenance;

fn two_lists() -> IndexPages {
    let list = |postings, reads, first_page, blocks: &[u32], queries: &[u32]| ListOfPages {
        postings,
        reads,
        pages: ListPages { first_page, blocks: blocks.to_vec() },
        queries: queries.to_vec(),
    };
    IndexPages {
        provenance: Provenance::new().with("index", "00c0ffee"),
        layout: PageLayout { num_pages: 9, page_rows: 1024, headers_bytes: 160 },
        rates: ReadRates::counted([(1000, 2.0, 1.0)]),
        lists: vec![list(1000, 0.1, 0, &[5, 3], &[3, 70]), list(100, 0.0, 1, &[1], &[])],
    }
}

fn written(pages: &IndexPages) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.pages.csv");
    pages.write(&path).unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn pages_are_read_as_they_were_written() {
    let pages = two_lists();
    let text = written(&pages);
    assert!(text.ends_with("postings,reads,first_page,blocks,queries\n1000,0.1,0,5;3,3;70\n100,0,1,1,\n"), "{text}");
    assert_eq!(IndexPages::parse("x", text.as_bytes()).unwrap(), pages);
    let of_each = pages.pages().of_each_list(2);
    assert_eq!(of_each, pages.lists.iter().map(|list| list.pages.clone()).collect::<Vec<_>>());
}

#[test]
fn what_is_no_file_of_pages_is_refused_with_its_place() {
    let good = written(&two_lists());
    for (from, to, expected) in [
        ("# pages: ", "# sides: ", "x: no line `# pages: {...}`: this is no file of an index's pages"),
        ("\"num_pages\":9", "\"num_pages\":1", "x:6: a list ends in page 1, and there are 1"),
        ("\"page_rows\":1024", "\"page_rows\":8", "`pages`: page_rows is 8, expected at least 128"),
        ("# read_rates: [", "# read_rates: [-1.0,", "`read_rates` is no model: a rate of -1, expected numbers from 0"),
        ("1000,0.1", "0,0.1", "`postings` is \"0\", expected a whole number from 1"),
        ("0.1,0,", "-1,0,", "`reads` is \"-1\", expected a number from 0"),
        ("5;3", "5;x", "`blocks` is \"5;x\", expected whole numbers from 0, between semicolons"),
        ("5;3", "5;4", "`blocks` is \"5;4\", expected at most 8 in all, of 128 postings each"),
        ("3;70", "70;3", "`queries` is \"70;3\", expected numbers that ascend"),
        ("0.1,0,", "0.1,2,", "`first_page` is \"1\", expected at least 2, where the list before it begins"),
        (",blocks,", ",blots,", "blots"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = IndexPages::parse("x", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
}

#[test]
fn copies_have_what_reads_leave_of_the_bus_and_a_share_of_the_rest() {
    let mut bus = Bus::default();
    assert_eq!(bus.read(Nanos(100), Nanos(50)), Nanos(150));
    // Nobody reads from 150 on: a copy of 1,000 that begins at 120 has had 650 at 800.
    bus.copy(Nanos(120), Nanos(1000));
    assert!(!bus.has_copied(Nanos(800)));
    // Reads of 1,000 take 72 longer beside it,
    let beside = Nanos(1000).scaled(COPY_SHARE);
    assert_eq!(bus.read(Nanos(800), Nanos(1000)), Nanos(1800) + beside);
    // and the rest of the copy comes when they have ended.
    assert!(!bus.has_copied(Nanos(1800) + beside));
    let end = Nanos(1800) + beside + (Nanos(350) - beside);
    assert!(!bus.has_copied(end - Nanos(1)) && bus.has_copied(end));
    // Nothing is lost: 2,050 of work and a gap of 0 to 100.
    assert_eq!(bus.read(Nanos(0), Nanos(10)), end + Nanos(10));
    // A copy that ends within reads costs them just what it takes.
    bus.copy(Nanos(10_000), Nanos(72));
    assert_eq!(bus.read(Nanos(10_000), Nanos(5000)), Nanos(15_072));
    let within = Nanos(10_000) + Nanos(72).scaled((1.0 + COPY_SHARE) / COPY_SHARE);
    assert!(!bus.has_copied(within - Nanos(1)) && bus.has_copied(within));
}
