//! A table by number that grows in chunks, so that no single call pays for all of it.

const CHUNK: usize = 1024;

#[derive(Clone, Debug)]
pub struct Chunks<T> {
    chunks: Vec<Option<Box<[T]>>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new() }
    }
}

impl<T: Default> Chunks<T> {
    /// None where nothing near was ever put.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.chunks.get(number as usize / CHUNK)?.as_ref()?.get(number as usize % CHUNK)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.chunks.get_mut(number as usize / CHUNK)?.as_mut()?.get_mut(number as usize % CHUNK)
    }

    /// The place of a number, made when it is not there yet.
    pub fn entry(&mut self, number: u32) -> &mut T {
        let chunk = number as usize / CHUNK;
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let make = || std::iter::repeat_with(T::default).take(CHUNK).collect();
        &mut self.chunks[chunk].get_or_insert_with(make)[number as usize % CHUNK]
    }

    /// Whatever is there, empty places of a chunk too.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().flat_map(|chunk| chunk.iter())
    }

    /// Back to nothing. Makes no chunk.
    pub fn clear(&mut self, number: u32) {
        if let Some(value) = self.get_mut(number) {
            *value = T::default();
        }
    }
}
