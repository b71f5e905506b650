//! The command without its exporter: `cargo test -p unfrag-cli --no-default-features --test cli no_exporter`.

use crate::support::fails;

#[test]
fn the_exporter_that_was_left_out_is_an_error_that_names_its_feature() {
    let commands: [&[&str]; 4] = [
        &["exporter"],
        &["exporter", "--help"],
        &["exporter", "--print", "--huge", "512"],
        &["exporter", "--listen", "127.0.0.1:0"],
    ];
    for command in commands {
        fails(command, 2, &["built without its exporter", "`exporter`"]);
    }
}
