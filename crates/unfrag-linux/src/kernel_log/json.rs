//! Messages in JSON, whatever the field that holds them is called. `spec: K.3`
//!
//! Invariant: the field is the one whose text begins a statement of a report, or that is known by its name; what an
//! object says besides (time, host) goes with the message.

use super::anchor::has_statement;
use super::envelope;
use crate::snapshots::dates::date;
use serde_json::Value;

/// Names of fields that hold messages, as loggers call them.
const NAMES: [&str; 15] = [
    "MESSAGE",
    "message",
    "msg",
    "Message",
    "log",
    "text",
    "line",
    "_raw",
    "textPayload",
    "original",
    "body",
    "short_message",
    "full_message",
    "content",
    "event",
];

/// Objects within objects that are looked into.
const MOST_DEPTH: usize = 6;
/// Fields of an object that are looked at.
const MOST_FIELDS: usize = 512;

/// A message, and what its object says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The text, which may have several lines.
    pub text: String,
    /// When it was logged.
    pub date: String,
    /// The host.
    pub host: String,
}

/// Reads objects and pieces of objects.
#[derive(Default)]
pub struct Objects {
    /// The field in which messages were found.
    name: Option<String>,
    /// Whether the text is an object of many lines.
    is_pretty: bool,
    /// What the fields before a message said.
    before: Record,
}

/// What a line is.
pub enum Line {
    /// No JSON.
    Other,
    /// JSON without a message.
    Nothing,
    /// JSON with messages.
    Records(Vec<Record>),
}

impl Objects {
    /// Reads a line.
    pub fn line(&mut self, text: &str) -> Line {
        let trimmed = text.trim();
        if let Some(line) = self.piece(trimmed) {
            return line;
        }
        let Some(at) = object_in(text) else {
            return Line::Other;
        };
        let Some(value) = serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<Value>()
            .next()
            .and_then(Result::ok)
        else {
            return Line::Other;
        };
        let objects = match value {
            Value::Array(list) => list,
            other => vec![other],
        };
        let before = text[..at].trim();
        let records: Vec<Record> = objects
            .iter()
            .filter_map(|o| self.object(o, before))
            .collect();
        match records.is_empty() {
            true => Line::Nothing,
            false => Line::Records(records),
        }
    }

    /// A field of an object that has a line for each, or a text of a list that has.
    fn piece(&mut self, text: &str) -> Option<Line> {
        let inner = text.trim_end_matches(',');
        if self.is_pretty && inner.bytes().all(|b| b"{}[] ".contains(&b)) {
            if inner.contains('}') {
                self.before = Record::default();
            }
            return Some(Line::Nothing);
        }
        if !inner.starts_with('"') {
            return None;
        }
        let mut values = serde_json::Deserializer::from_str(inner).into_iter::<Value>();
        let Some(Ok(Value::String(first))) = values.next() else {
            return None;
        };
        let rest = inner[values.byte_offset()..].trim_start();
        if rest.is_empty() {
            // A text of a list.
            self.is_pretty |= has_statement(&first);
            return self.is_pretty.then(|| {
                Line::Records(vec![Record {
                    text: first,
                    ..self.before.clone()
                }])
            });
        }
        let rest = rest.strip_prefix(':')?.trim_start();
        if matches!(rest, "{" | "[") {
            return Some(Line::Nothing);
        }
        let value = serde_json::from_str::<Value>(rest).ok()?;
        let said = message(&value);
        if let Some(text) = &said
            && (self.is_name(&first) || has_statement(text))
        {
            self.is_pretty = true;
            self.name.get_or_insert(first);
            return Some(Line::Records(vec![Record {
                text: text.clone(),
                ..self.before.clone()
            }]));
        }
        besides(&first, &value, &mut self.before);
        Some(Line::Nothing)
    }

    fn is_name(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name) || NAMES.contains(&name)
    }

    fn object(&mut self, value: &Value, before: &str) -> Option<Record> {
        let mut leaves = vec![];
        collect(value, "", 0, &mut leaves);
        let texts: Vec<(&str, String)> = leaves
            .iter()
            .filter_map(|(name, v)| Some((*name, message(v)?)))
            .collect();
        let by = |test: &dyn Fn(&str, &str) -> bool| {
            texts.iter().position(|(name, text)| test(name, text))
        };
        let learned = self.name.clone();
        let at = by(&|name, text| Some(name) == learned.as_deref() && has_statement(text))
            .or_else(|| by(&|_, text| has_statement(text)))
            .or_else(|| by(&|name, _| Some(name) == learned.as_deref()))
            .or_else(|| NAMES.iter().find_map(|known| by(&|name, _| name == *known)))?;
        let (name, text) = &texts[at];
        if has_statement(text) {
            self.name = Some((*name).to_owned());
        }
        let mut record = Record {
            text: text.clone(),
            ..Record::default()
        };
        for (other, v) in &leaves {
            if other != name {
                besides(other, v, &mut record);
            }
        }
        if record.date.is_empty() {
            before.clone_into(&mut record.date);
        }
        if record.host.is_empty() {
            envelope::strip(before).host.clone_into(&mut record.host);
        }
        // A logger's record may hold another logger's.
        if record.text.trim_start().starts_with('{')
            && let Ok(inner) = serde_json::from_str::<Value>(record.text.trim())
            && let Some(inner) = self.object(&inner, "")
        {
            record.text = inner.text;
        }
        Some(record)
    }
}

/// Where an object with fields begins in a line, behind what another logger put before it.
fn object_in(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(['{', '['])?;
        let rest = text[at + 1..].trim_start();
        if rest.starts_with('"') && text.as_bytes()[at] == b'{' || rest.starts_with("{\"") {
            return Some(at);
        }
        from = at + 1;
        if from > 512 {
            return None;
        }
    }
}

/// The values of an object and of those in it, with their names; those of `host: { name }` are called `host`.
fn collect<'a>(value: &'a Value, name: &'a str, depth: usize, out: &mut Vec<(&'a str, &'a Value)>) {
    if depth > MOST_DEPTH || out.len() > MOST_FIELDS {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, v) in fields {
                let is_host = depth > 0 && name == "host" && key == "name";
                collect(v, if is_host { name } else { key }, depth + 1, out);
            }
        }
        other => out.push((name, other)),
    }
}

/// A message, which the journal writes as numbers where it is not text.
fn message(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(bytes) if !bytes.is_empty() => {
            let byte = |b: &Value| b.as_u64().and_then(|b| u8::try_from(b).ok());
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            Some(String::from_utf8_lossy(&bytes?).into_owned())
        }
        _ => None,
    }
}

/// What a field beside the message says.
pub fn besides(name: &str, value: &Value, record: &mut Record) {
    let said = match value {
        Value::String(s) => s.clone(),
        Value::Number(n) => n.to_string(),
        _ => return,
    };
    match name {
        "__REALTIME_TIMESTAMP" => {
            if let Ok(micros) = said.parse::<u64>() {
                record.date = of_epoch(micros / 1_000_000);
            }
        }
        "@timestamp" | "timestamp" | "time" | "ts" | "date" | "datetime" | "Time"
            if record.date.is_empty() =>
        {
            record.date = said;
        }
        "_HOSTNAME" | "host" | "hostname" | "Hostname" | "HOSTNAME" | "instance" | "node"
        | "computer" | "_MACHINE_ID"
            if record.host.is_empty() || name == "_HOSTNAME" =>
        {
            record.host = said;
        }
        _ => {}
    }
}

/// Seconds since 1970 as a date with the time of day, in UTC.
fn of_epoch(s: u64) -> String {
    format!(
        "{}T{:02}:{:02}:{:02}",
        date(s),
        s / 3600 % 24,
        s / 60 % 60,
        s % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[&str]) -> Vec<Record> {
        let mut objects = Objects::default();
        let mut out = vec![];
        for line in lines {
            if let Line::Records(r) = objects.line(line) {
                out.extend(r);
            }
        }
        out
    }

    /// `spec: K.3`
    #[test]
    fn the_message_is_found_in_a_field_of_any_name() {
        for object in [
            r#"{"MESSAGE":"Mem-Info:"}"#,
            r#"{"a":1,"whatever":"Mem-Info:","b":"x"}"#,
            r#"{"log":"{\"what\":\"Mem-Info:\"}"}"#,
            r#"2026-01-02T03:04:05Z stream {"deep":{"deeper":{"m":"Mem-Info:"}}}"#,
            r#"data: {"MESSAGE":[77,101,109,45,73,110,102,111,58]}"#,
            r#"[{"x":"Mem-Info:"}]"#,
        ] {
            let found = records(&[object]);
            assert_eq!(found.len(), 1, "{object}");
            assert_eq!(found[0].text, "Mem-Info:", "{object}");
        }
    }

    #[test]
    fn the_field_of_one_message_is_that_of_the_next() {
        let found = records(&[
            r#"{"what":"Mem-Info:","note":"n"}"#,
            r#"{"note":"n","what":"nothing known"}"#,
        ]);
        assert_eq!(found[1].text, "nothing known");
    }

    #[test]
    fn time_and_host_go_with_the_message() {
        let line =
            r#"{"__REALTIME_TIMESTAMP":"1707462579000000","_HOSTNAME":"b","MESSAGE":"Mem-Info:"}"#;
        let found = records(&[line]);
        assert_eq!(
            (found[0].date.as_str(), found[0].host.as_str()),
            ("2024-02-09T07:09:39", "b")
        );
        let line = r#"{"host":{"name":"h"},"message":"kernel: Mem-Info:"}"#;
        assert_eq!(records(&[line])[0].host, "h");
    }

    #[test]
    fn objects_and_lists_of_many_lines_are_read() {
        let found = records(&[
            "{",
            "  \"dmesg\": [",
            "    {",
            "      \"pri\": 4,",
            "      \"time\": 761945.327441,",
            "      \"msg\": \"Mem-Info:\"",
            "    },{",
        ]);
        assert_eq!((found.len(), found[0].date.as_str()), (1, "761945.327441"));
        assert_eq!(
            records(&["\"[ 1.5] Mem-Info:\","])[0].text,
            "[ 1.5] Mem-Info:"
        );
    }
}
