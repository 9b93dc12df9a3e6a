//! The bytes of a checkpoint: written in one pass, read with every length checked against the file's size before
//! anything is allocated for it.

use std::{
    collections::BTreeMap,
    io::{self, Read, Seek, SeekFrom, Write},
    sync::Arc,
};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::{Checkpoint, Flaw, VERSION};
use crate::{
    config::Config,
    state::{Array, Elements, State},
};

const FORMAT: &str = "dpcl-checkpoint";
const CHECKSUM: &str = "checksum";
/// Two MD5 digests.
const CHECKSUM_BYTES: u64 = 32;
const LENGTH_BYTES: u64 = 8;
/// What readers of safetensors accept.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes converted at once.
const PIECE: usize = 1 << 16;

/// Why reading failed.
pub enum Failure {
    /// The system did not hand out the bytes.
    Io(io::Error),
    /// The bytes are not good.
    Flaw(Flaw),
}

impl From<Flaw> for Failure {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Flaw(damaged("it became shorter while it was read")),
            _ => Self::Io(error),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default)]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    arrays: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// Writes a checkpoint; returns the checksum of the whole in hexadecimal digits.
pub fn write(checkpoint: &Checkpoint, out: &mut dyn Write) -> io::Result<String> {
    let arrays = in_order(&checkpoint.state);
    let header = header(checkpoint, &arrays)?;
    let mut out = Hashing { out, digest: Md5::new() };
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    let head = out.digest.clone().finalize();
    let mut piece = Vec::with_capacity(PIECE);
    for (_, array) in arrays {
        match &array.elements {
            Elements::F32(elements) => {
                for part in elements.chunks(PIECE / 4) {
                    piece.clear();
                    piece.extend(part.iter().flat_map(|element| element.to_le_bytes()));
                    out.write_all(&piece)?;
                }
            }
            Elements::U8(elements) => out.write_all(elements)?,
        }
    }
    let whole = out.digest.clone().finalize();
    out.write_all(&head)?;
    out.write_all(&whole)?;
    Ok(hexadecimal(&whole))
}

/// Floats before bytes, so that floats lie at multiples of four; each by name.
fn in_order(state: &State) -> Vec<(&String, &Array)> {
    let mut arrays: Vec<(&String, &Array)> =
        state.arrays.iter().map(|(name, array)| (name, &**array)).collect();
    arrays.sort_by_key(|(_, array)| matches!(array.elements, Elements::U8(_)));
    arrays
}

fn header(checkpoint: &Checkpoint, arrays: &[(&String, &Array)]) -> io::Result<Vec<u8>> {
    let mut metadata = BTreeMap::from([
        ("format", FORMAT.to_owned()),
        ("version", VERSION.to_string()),
        ("program", checkpoint.program.clone()),
        ("isa", checkpoint.isa.clone()),
        ("shape", serde_json::to_string(&checkpoint.shape)?),
        ("config", checkpoint.config.to_toml().map_err(io::Error::other)?),
        ("classes", serde_json::to_string(&checkpoint.classes)?),
        ("values", serde_json::to_string(&checkpoint.state.values)?),
    ]);
    if let Some(run) = &checkpoint.run {
        metadata.insert("run", run.to_string());
    }
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut header = Header { metadata, arrays: BTreeMap::new() };
    let mut end = 0;
    let mut place = |name: &str, dtype: &str, shape: Vec<usize>, bytes: u64| {
        let data_offsets = (end, end + bytes);
        end += bytes;
        let entry = Entry { dtype: dtype.to_owned(), shape, data_offsets };
        header.arrays.insert(name.to_owned(), entry)
    };
    for (name, array) in arrays {
        let (dtype, bytes) = match &array.elements {
            Elements::F32(elements) => ("F32", elements.len() as u64 * 4),
            Elements::U8(elements) => ("U8", elements.len() as u64),
        };
        place(name, dtype, array.shape.clone(), bytes);
    }
    if place(CHECKSUM, "U8", vec![CHECKSUM_BYTES as usize], CHECKSUM_BYTES).is_some() {
        return Err(io::Error::other("a part of the learner is called `checksum`"));
    }
    let mut bytes = serde_json::to_vec(&header)?;
    bytes.resize(bytes.len().next_multiple_of(8), b' ');
    if bytes.len() as u64 > LONGEST_HEADER {
        return Err(io::Error::other("the learner's values take more room than a safetensors header has"));
    }
    Ok(bytes)
}

/// Reads a checkpoint of `length` bytes.
pub fn read<R: Read + Seek>(file: &mut R, length: u64) -> Result<Checkpoint, Failure> {
    let header_bytes = read_header(file, length)?;
    let start = LENGTH_BYTES + header_bytes.len() as u64;
    let header = parse(&header_bytes)?;
    // The digests lie at the end whatever the header says.
    let end = length.saturating_sub(CHECKSUM_BYTES).max(start);
    let mut digests = [0; CHECKSUM_BYTES as usize];
    file.seek(SeekFrom::Start(end))?;
    if length - end == CHECKSUM_BYTES {
        file.read_exact(&mut digests)?;
    }
    let (head, whole) = digests.split_at(digests.len() / 2);
    let mut digest = Md5::new();
    digest.update((header_bytes.len() as u64).to_le_bytes());
    digest.update(&header_bytes);
    if digest.clone().finalize()[..] != *head {
        return Err(misread_header(&header, length, start).into());
    }
    let metadata = |key: &str| -> Result<&String, Failure> {
        Ok(header.metadata.get(key).ok_or_else(|| misfit(format!("`{key}` is missing from its metadata")))?)
    };
    let version: u32 = metadata("version")?.parse().map_err(|_| misfit("its layout has no version"))?;
    if version > VERSION {
        return Err(Flaw::Newer { found: version }.into());
    }
    let entries = contiguous(&header.arrays, length - start)?;
    file.seek(SeekFrom::Start(start))?;
    let mut arrays = BTreeMap::new();
    for (name, entry) in entries {
        let array = read_array(file, name, entry, &mut digest)?;
        arrays.insert(name.clone(), Arc::new(array));
    }
    if digest.finalize()[..] != *whole {
        return Err(damaged(format!("bytes {start} to {end} do not match their checksum")).into());
    }
    let values = from_json("values", metadata("values")?)?;
    let state = State { arrays, values };
    if let Some(name) = state.not_finite() {
        return Err(Flaw::NotFinite(name.to_owned()).into());
    }
    Ok(Checkpoint {
        config: Config::from_recorded_toml(metadata("config")?).map_err(|error| misfit(error.to_string()))?,
        shape: from_json("shape", metadata("shape")?)?,
        classes: from_json("classes", metadata("classes")?)?,
        state,
        run: header.metadata.get("run").map(|run| from_json("run", run)).transpose()?,
        program: metadata("program")?.clone(),
        isa: metadata("isa")?.clone(),
        checksum: Some(hexadecimal(whole)),
    })
}

/// The checksum of the whole at the end of a file; `None` for one that is too short to have one.
pub fn last_checksum(file: &mut (impl Read + Seek)) -> io::Result<Option<String>> {
    let mut digest = [0; CHECKSUM_BYTES as usize / 2];
    if file.seek(SeekFrom::End(0))? < LENGTH_BYTES + CHECKSUM_BYTES {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-(digest.len() as i64)))?;
    file.read_exact(&mut digest)?;
    Ok(Some(hexadecimal(&digest)))
}

fn read_header<R: Read + Seek>(file: &mut R, length: u64) -> Result<Vec<u8>, Failure> {
    if length < LENGTH_BYTES + CHECKSUM_BYTES {
        return Err(Flaw::SomethingElse(format!("it has only {length} bytes")).into());
    }
    let mut bytes = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut bytes)?;
    let claimed = u64::from_le_bytes(bytes);
    if claimed > LONGEST_HEADER {
        return Err(Flaw::SomethingElse("it does not begin like a safetensors file".into()).into());
    }
    if claimed > length - LENGTH_BYTES {
        let problem = format!("its header should have {claimed} bytes, and the whole file has {length}");
        return Err(damaged(problem).into());
    }
    let mut header = vec![0; claimed as usize];
    file.read_exact(&mut header)?;
    Ok(header)
}

/// The header, or why it is none.
fn parse(bytes: &[u8]) -> Result<Header, Failure> {
    // A file that was a checkpoint still says so in most places after an accident.
    let marked = bytes.windows(FORMAT.len()).any(|window| window == FORMAT.as_bytes());
    match serde_json::from_slice::<Header>(bytes) {
        Ok(header) if header.metadata.get("format").is_some_and(|format| format == FORMAT) => Ok(header),
        Ok(_) if !marked => Err(Flaw::SomethingElse("a safetensors file of something else".into()).into()),
        Err(_) if !marked => Err(Flaw::SomethingElse("it has no safetensors header".into()).into()),
        _ => Err(damaged(format!(
            "its header (bytes {LENGTH_BYTES} to {})",
            bytes.len() as u64 + LENGTH_BYTES
        ))
        .into()),
    }
}

/// The header does not match its checksum: because the end of the file is missing or because either was changed.
fn misread_header(header: &Header, length: u64, start: u64) -> Flaw {
    let end = header.arrays.values().map(|entry| entry.data_offsets.1).max().unwrap_or(0);
    match start.checked_add(end) {
        Some(wanted) if wanted != length => {
            damaged(format!("it should have {wanted} bytes by its header, and has {length}"))
        }
        _ => damaged(format!("its header (bytes 0 to {start}) does not match its checksum")),
    }
}

/// The arrays in file order without the checksum, after making sure that they fill `length` bytes without gaps.
fn contiguous(arrays: &BTreeMap<String, Entry>, length: u64) -> Result<Vec<(&String, &Entry)>, Failure> {
    let mut entries: Vec<(&String, &Entry)> = arrays.iter().collect();
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut end = 0;
    for (name, entry) in &entries {
        let (start, stop) = entry.data_offsets;
        if start != end || stop < start || Some(stop - start) != bytes_of(entry) {
            return Err(
                misfit(format!("array `{name}` lies at the wrong place or has the wrong size")).into()
            );
        }
        end = stop;
    }
    if end != length {
        return Err(damaged(format!("its arrays should have {end} bytes, and have {length}")).into());
    }
    match entries.pop() {
        Some((name, entry)) if name == CHECKSUM && bytes_of(entry) == Some(CHECKSUM_BYTES) => Ok(entries),
        _ => Err(misfit("its checksum is not its last array").into()),
    }
}

/// Bytes an array must have; `None` for one that cannot be.
fn bytes_of(entry: &Entry) -> Option<u64> {
    let size = match entry.dtype.as_str() {
        "F32" => 4,
        "U8" => 1,
        _ => return None,
    };
    // Also with empty dimensions every product of some of them must be a number.
    let extent = |dimension: usize| (dimension as u64).max(1);
    let most =
        entry.shape.iter().try_fold(size, |bytes: u64, &dimension| bytes.checked_mul(extent(dimension)))?;
    Some(if entry.shape.contains(&0) { 0 } else { most })
}

fn read_array<R: Read>(file: &mut R, name: &str, entry: &Entry, digest: &mut Md5) -> Result<Array, Failure> {
    let length = usize::try_from(entry.data_offsets.1 - entry.data_offsets.0);
    let length = length.map_err(|_| misfit(format!("array `{name}` is too large for this machine")))?;
    if entry.dtype == "U8" {
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        digest.update(&bytes);
        return Ok(Array::bytes(entry.shape.clone(), bytes));
    }
    let mut floats = Vec::with_capacity(length / 4);
    let mut piece = vec![0; PIECE];
    while floats.len() < length / 4 {
        let piece = &mut piece[..PIECE.min(length - floats.len() * 4)];
        file.read_exact(piece)?;
        digest.update(&*piece);
        floats.extend(piece.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    }
    Ok(Array::floats(entry.shape.clone(), floats))
}

fn from_json<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, Failure> {
    Ok(serde_json::from_str(text).map_err(|error| {
        misfit(format!("`{key}` in its metadata: {}", dpcl_report::error::plain_words(&error)))
    })?)
}

fn damaged(problem: impl Into<String>) -> Flaw {
    Flaw::Damaged(problem.into())
}

fn misfit(problem: impl Into<String>) -> Flaw {
    Flaw::Misfit(problem.into())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Passes bytes on and adds them to a digest.
struct Hashing<'a> {
    out: &'a mut dyn Write,
    digest: Md5,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
