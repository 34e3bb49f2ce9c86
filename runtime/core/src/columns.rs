//! Rows to Arrow and back: the wire format of the log, and the one table that documents it.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, PrimitiveBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema};

use crate::names::{self, Kind, Phase, Reason, Tier};
use crate::row::Row;

/// (column, type, meaning). Extend at the end; never change a line.
pub const SCHEMA: &[(&str, &str, &str)] = &[
    ("seq", "uint64", "number of the row in this epoch, from 1, without gaps"),
    ("ts", "int64", "wall clock, ns since 1970"),
    ("clock", "int64", "the core's `now`, ns; never goes back"),
    ("rank", "uint16", "rank that published the row"),
    ("kind", "text", "what the row is about"),
    ("phase", "text", "which step of it"),
    ("cause", "uint64", "seq of the row that made this one happen"),
    ("op", "uint64", "operation (a reservation or a move), or hint, that the row belongs to"),
    ("session", "text", "session that asked; for evict, the page's last user"),
    ("parent_session", "text", "session that this one was spawned from"),
    ("request", "text", "request that asked"),
    ("namespace", "uint32", "root under which the pages hang"),
    ("node", "uint32", "tree node; numbers are used again after the node is gone"),
    ("parent", "uint32", "parent of a new node; for split, the new head"),
    ("slot_from", "uint32", "first slot of the run"),
    ("page_from", "uint32", "first page of the run in the tier's pool"),
    ("pages", "uint32", "length of the run, or a count of pages"),
    ("end_page", "uint32", "page index in the sequence just after the run or match"),
    ("component", "text", "component that the slots are of; match: the one that gave less than full"),
    ("tier_from", "text", "where bytes come from or leave"),
    ("tier_to", "text", "where bytes go"),
    ("tokens", "int64", "tokens asked or meant; lease: forks still awaited"),
    ("device_tokens", "int64", "matched tokens whose fastest copy is on the device"),
    ("host_tokens", "int64", "... on the host"),
    ("storage_tokens", "int64", "... in storage only"),
    ("bytes", "uint64", "bytes moved"),
    ("duration", "int64", "ns; lease: its time"),
    ("reason", "text", "why; for canary rows, the hop"),
    ("policy", "text", "eviction policy that chose; config: family of a component"),
    (
        "score",
        "int64",
        "what the policy went by; lease: expiry (ns); move: deadline (ns); match: first diverging token; session: priority or expected return (ns)",
    ),
    ("skipped", "uint32", "candidates passed over because they were held"),
    ("receipt", "uint64", "lock or lease"),
    ("digests", "binary", "32 bytes a page"),
    ("engine_hash", "binary", "the engine's own name for the block"),
    ("detail", "text", "free text or JSON"),
];

/// What the schema metadata of a message says.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub engine: String,
    pub epoch: String,
    pub first: u64,
    pub rows: usize,
    pub dropped: u64,
    pub state_hash: u128,
}

pub fn encode(rows: &[Row], envelope: &Envelope, wall_offset: i64) -> Result<Vec<u8>, ArrowError> {
    let columns: Vec<ArrayRef> = vec![
        numbers::<UInt64Type>(rows, |r| Some(r.seq)),
        numbers::<Int64Type>(rows, |r| Some(r.clock.saturating_add(wall_offset))),
        numbers::<Int64Type>(rows, |r| Some(r.clock)),
        numbers::<UInt16Type>(rows, |_| Some(0)),
        words(rows, |r| Some(r.kind.name())),
        words(rows, |r| some(r.phase.name())),
        numbers::<UInt64Type>(rows, |r| r.cause),
        numbers::<UInt64Type>(rows, |r| r.op),
        words(rows, |r| r.session.as_deref()),
        words(rows, |r| r.parent_session.as_deref()),
        words(rows, |r| r.request.as_deref()),
        numbers::<UInt32Type>(rows, |r| r.namespace),
        numbers::<UInt32Type>(rows, |r| r.node),
        numbers::<UInt32Type>(rows, |r| r.parent),
        numbers::<UInt32Type>(rows, |r| r.slot_from),
        numbers::<UInt32Type>(rows, |r| r.page_from),
        numbers::<UInt32Type>(rows, |r| r.pages),
        numbers::<UInt32Type>(rows, |r| r.end_page),
        words(rows, |r| r.component),
        words(rows, |r| r.tier_from.map(Tier::name)),
        words(rows, |r| r.tier_to.map(Tier::name)),
        numbers::<Int64Type>(rows, |r| r.tokens),
        numbers::<Int64Type>(rows, |r| r.hit_tokens.map(|h| h[0])),
        numbers::<Int64Type>(rows, |r| r.hit_tokens.map(|h| h[1])),
        numbers::<Int64Type>(rows, |r| r.hit_tokens.map(|h| h[2])),
        numbers::<UInt64Type>(rows, |r| r.bytes),
        numbers::<Int64Type>(rows, |r| r.duration),
        words(rows, |r| some(r.reason.name())),
        words(rows, |r| r.policy),
        numbers::<Int64Type>(rows, |r| r.score),
        numbers::<UInt32Type>(rows, |r| r.skipped),
        numbers::<UInt64Type>(rows, |r| r.receipt),
        digests(rows),
        Arc::new(arrow_array::BinaryArray::new_null(rows.len())),
        texts(rows),
    ];
    let fields = SCHEMA.iter().zip(&columns);
    let fields: Vec<Field> =
        fields.map(|((name, ..), c)| Field::new(*name, c.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields).with_metadata(envelope.to_metadata()));
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.into_inner()
}

pub fn decode(payload: &[u8]) -> Result<(Envelope, Vec<Row>), String> {
    let broken = |e: ArrowError| format!("not an Arrow IPC stream: {e}");
    let mut reader = StreamReader::try_new(Cursor::new(payload), None).map_err(broken)?;
    let envelope = Envelope::from_metadata(reader.schema().metadata())?;
    let mut rows = Vec::new();
    for batch in &mut reader {
        read_batch(&batch.map_err(broken)?, &mut rows)?;
    }
    let first = rows.first().map_or(envelope.first, |r| r.seq);
    if rows.len() != envelope.rows || first != envelope.first {
        return Err(format!(
            "message says {} rows from {}, has {} from {first}",
            envelope.rows,
            envelope.first,
            rows.len()
        ));
    }
    Ok((envelope, rows))
}

impl Envelope {
    fn to_metadata(&self) -> HashMap<String, String> {
        let pairs = [
            ("v", "1".to_string()),
            ("engine", self.engine.clone()),
            ("epoch", self.epoch.clone()),
            ("first", self.first.to_string()),
            ("rows", self.rows.to_string()),
            ("dropped", self.dropped.to_string()),
            ("state_hash", format!("{:032x}", self.state_hash)),
        ];
        pairs.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
    }

    fn from_metadata(metadata: &Metadata) -> Result<Self, String> {
        let text = |key: &str| metadata.get(key).cloned().ok_or_else(|| format!("metadata lacks {key}"));
        let number = |key: &str| {
            let value = text(key)?;
            value.parse::<u64>().map_err(|_| format!("metadata {key} is {value:?}, not a number"))
        };
        let hash = text("state_hash")?;
        Ok(Envelope {
            engine: text("engine")?,
            epoch: text("epoch")?,
            first: number("first")?,
            rows: number("rows")? as usize,
            dropped: number("dropped")?,
            state_hash: u128::from_str_radix(&hash, 16).map_err(|_| format!("state_hash is {hash:?}"))?,
        })
    }
}

fn some(text: &'static str) -> Option<&'static str> {
    (!text.is_empty()).then_some(text)
}

fn numbers<T: ArrowPrimitiveType>(rows: &[Row], get: impl Fn(&Row) -> Option<T::Native>) -> ArrayRef {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(rows.len());
    rows.iter().for_each(|row| builder.append_option(get(row)));
    Arc::new(builder.finish())
}

fn words<'a>(rows: &'a [Row], get: impl Fn(&'a Row) -> Option<&'a str>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    rows.iter().for_each(|row| builder.append_option(get(row)));
    Arc::new(builder.finish())
}

fn texts(rows: &[Row]) -> ArrayRef {
    let mut builder = StringBuilder::new();
    rows.iter().for_each(|row| builder.append_option(row.detail.as_deref()));
    Arc::new(builder.finish())
}

fn digests(rows: &[Row]) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    for row in rows {
        if row.digests.is_empty() {
            builder.append_null();
        } else {
            builder.append_value(row.digests.as_flattened());
        }
    }
    Arc::new(builder.finish())
}

/// A batch's columns by name; absent ones (an older log) read as nulls, unknown ones are ignored.
struct Columns<'a>(&'a RecordBatch);

impl Columns<'_> {
    fn numbers<T: ArrowPrimitiveType>(&self, name: &str, rows: &mut [Row], set: fn(&mut Row, T::Native)) {
        let array = self.0.column_by_name(name).and_then(|c| c.as_primitive_opt::<T>());
        let Some(array) = array.filter(|a| a.null_count() < a.len()) else { return };
        for (row, number) in rows.iter_mut().zip(array) {
            number.into_iter().for_each(|n| set(row, n));
        }
    }

    /// Each word is read once, however many rows have it.
    fn words<W: Clone>(
        &self,
        name: &str,
        rows: &mut [Row],
        parse: impl Fn(&str) -> Option<W>,
        set: fn(&mut Row, W),
    ) -> Result<(), String> {
        let Some(column) = self.0.column_by_name(name) else { return Ok(()) };
        let array = column.as_dictionary_opt::<Int32Type>();
        let Some((array, values)) = array.and_then(|a| Some((a, a.values().as_string_opt::<i32>()?))) else {
            return Err(format!("column {name} is {}, not a dictionary of text", column.data_type()));
        };
        let words: Vec<Option<W>> = values.iter().map(|word| parse(word?)).collect();
        for (row, key) in rows.iter_mut().zip(array.keys()) {
            let Some(key) = key.map(|k| k as usize).filter(|k| values.is_valid(*k)) else { continue };
            let word = words[key].clone().ok_or_else(|| format!("unknown {name} {:?}", values.value(key)))?;
            set(row, word);
        }
        Ok(())
    }

    fn names(&self, name: &str, rows: &mut [Row], set: fn(&mut Row, Arc<str>)) -> Result<(), String> {
        self.words(name, rows, |word| Some(Arc::from(word)), set)
    }
}

fn read_batch(batch: &RecordBatch, rows: &mut Vec<Row>) -> Result<(), String> {
    for (name, data_type, _) in SCHEMA {
        let Some(column) = batch.column_by_name(name) else { continue };
        if !fits(column.data_type(), data_type) {
            return Err(format!("column {name} is {}, not {data_type}", column.data_type()));
        }
    }
    for name in ["seq", "clock", "kind"] {
        if batch.column_by_name(name).is_none_or(|column| column.null_count() > 0) {
            return Err(format!("a row without a {name}"));
        }
    }
    let at = rows.len();
    rows.resize(at + batch.num_rows(), Row::new(Kind::Gap, Phase::None));
    let (c, rows) = (Columns(batch), &mut rows[at..]);
    c.numbers::<UInt64Type>("seq", rows, |row, n| row.seq = n);
    c.numbers::<Int64Type>("clock", rows, |row, n| row.clock = n);
    c.words("kind", rows, Kind::parse, |row, kind| row.kind = kind)?;
    c.words("phase", rows, Phase::parse, |row, phase| row.phase = phase)?;
    c.numbers::<UInt64Type>("cause", rows, |row, n| row.cause = Some(n));
    c.numbers::<UInt64Type>("op", rows, |row, n| row.op = Some(n));
    c.names("session", rows, |row, name| row.session = Some(name))?;
    c.names("parent_session", rows, |row, name| row.parent_session = Some(name))?;
    c.names("request", rows, |row, name| row.request = Some(name))?;
    c.numbers::<UInt32Type>("namespace", rows, |row, n| row.namespace = Some(n));
    c.numbers::<UInt32Type>("node", rows, |row, n| row.node = Some(n));
    c.numbers::<UInt32Type>("parent", rows, |row, n| row.parent = Some(n));
    c.numbers::<UInt32Type>("slot_from", rows, |row, n| row.slot_from = Some(n));
    c.numbers::<UInt32Type>("page_from", rows, |row, n| row.page_from = Some(n));
    c.numbers::<UInt32Type>("pages", rows, |row, n| row.pages = Some(n));
    c.numbers::<UInt32Type>("end_page", rows, |row, n| row.end_page = Some(n));
    c.words("component", rows, names::name, |row, component| row.component = Some(component))?;
    c.words("tier_from", rows, Tier::parse, |row, tier| row.tier_from = Some(tier))?;
    c.words("tier_to", rows, Tier::parse, |row, tier| row.tier_to = Some(tier))?;
    c.numbers::<Int64Type>("tokens", rows, |row, n| row.tokens = Some(n));
    c.numbers::<Int64Type>("device_tokens", rows, |row, n| row.hit_tokens.get_or_insert_default()[0] = n);
    c.numbers::<Int64Type>("host_tokens", rows, |row, n| row.hit_tokens.get_or_insert_default()[1] = n);
    c.numbers::<Int64Type>("storage_tokens", rows, |row, n| row.hit_tokens.get_or_insert_default()[2] = n);
    c.numbers::<UInt64Type>("bytes", rows, |row, n| row.bytes = Some(n));
    c.numbers::<Int64Type>("duration", rows, |row, n| row.duration = Some(n));
    c.words("reason", rows, Reason::parse, |row, reason| row.reason = reason)?;
    c.words("policy", rows, names::name, |row, policy| row.policy = Some(policy))?;
    c.numbers::<Int64Type>("score", rows, |row, n| row.score = Some(n));
    c.numbers::<UInt32Type>("skipped", rows, |row, n| row.skipped = Some(n));
    c.numbers::<UInt64Type>("receipt", rows, |row, n| row.receipt = Some(n));
    read_digests(batch, rows)?;
    read_details(batch, rows);
    Ok(())
}

fn fits(actual: &DataType, documented: &str) -> bool {
    match documented {
        "uint16" => *actual == DataType::UInt16,
        "uint32" => *actual == DataType::UInt32,
        "uint64" => *actual == DataType::UInt64,
        "int64" => *actual == DataType::Int64,
        "binary" => *actual == DataType::Binary,
        _ => matches!(actual, DataType::Utf8 | DataType::Dictionary(_, _)),
    }
}

fn read_digests(batch: &RecordBatch, rows: &mut [Row]) -> Result<(), String> {
    let Some(array) = batch.column_by_name("digests").and_then(|c| c.as_binary_opt::<i32>()) else {
        return Ok(());
    };
    for (row, bytes) in rows.iter_mut().zip(array) {
        match bytes.unwrap_or_default().as_chunks::<32>() {
            (whole, []) => row.digests = whole.to_vec(),
            (_, rest) => return Err(format!("digests are 32 bytes a page; {} are left over", rest.len())),
        }
    }
    Ok(())
}

fn read_details(batch: &RecordBatch, rows: &mut [Row]) {
    let Some(array) = batch.column_by_name("detail").and_then(|c| c.as_string_opt::<i32>()) else { return };
    for (row, text) in rows.iter_mut().zip(array) {
        row.detail = text.map(Arc::from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_row(seq: u64) -> Row {
        let mut row = Row::new(Kind::Insert, Phase::New);
        (row.seq, row.clock, row.cause, row.op) = (seq, -5, Some(7), Some(u64::MAX));
        row.session = Some("séance [red]".into());
        row.request = Some("".into());
        (row.node, row.slot_from, row.pages, row.end_page) = (Some(0), Some(u32::MAX), Some(2), Some(9));
        (row.tier_from, row.tier_to) = (Some(Tier::Storage), Some(Tier::Device));
        row.hit_tokens = Some([1, 0, -1]);
        (row.bytes, row.score, row.reason) = (Some(u64::MAX), Some(i64::MIN), Reason::Flush);
        row.policy = Some("lru");
        row.digests = vec![[1; 32], [255; 32]];
        row.detail = Some("{\"a\": 1}".into());
        row
    }

    #[test]
    fn rows_survive_the_wire_whole() {
        let rows = vec![full_row(41), Row { seq: 42, ..Row::new(Kind::Split, Phase::None) }];
        let envelope = Envelope {
            engine: "e".into(),
            epoch: "x".into(),
            first: 41,
            rows: 2,
            dropped: 3,
            state_hash: 1 << 127,
        };
        let payload = encode(&rows, &envelope, 1000).unwrap();
        assert_eq!(decode(&payload).unwrap(), (envelope, rows));
    }

    #[test]
    fn broken_bytes_are_an_error_and_not_a_panic() {
        let envelope =
            Envelope { engine: "e".into(), epoch: "x".into(), first: 1, rows: 1, dropped: 0, state_hash: 0 };
        let payload = encode(&[full_row(1)], &envelope, 0).unwrap();
        for cut in 0..payload.len() {
            let _ = std::panic::catch_unwind(|| decode(&payload[..cut])).expect("no panic");
        }
        assert!(decode(b"").is_err());
        assert!(decode(b"hello, is this Arrow?").is_err());
    }
}
