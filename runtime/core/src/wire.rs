//! How what is kept or sent is written as bytes.

use std::borrow::Cow;
use std::sync::Arc;

use crate::names::{FamilyName, KeyKind, Kind, Phase, Reason, Tier};

/// A value with one encoding: integers little-endian, text and lists length-prefixed.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($t:ty),*) => { $(impl Wire for $t {
        fn put(&self, out: &mut Vec<u8>) {
            out.extend(self.to_le_bytes());
        }
        fn get(bytes: &mut &[u8]) -> Option<Self> {
            let (head, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(<$t>::from_le_bytes(*head))
        }
    })* };
}
integers!(u8, u16, u32, u64, u128, i32, i64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        u8::get(bytes).map(|b| b != 0)
    }
}

impl<T: Wire + Clone> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let len = u64::get(bytes)?;
        (0..len).map(|_| T::get(bytes)).collect()
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Vec::get(bytes)?).ok()
    }
}

impl Wire for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        String::get(bytes).map(Arc::from)
    }
}

impl Wire for Cow<'_, [u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self);
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        Vec::get(bytes).map(Cow::Owned)
    }
}

impl Wire for Cow<'_, str> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        String::get(bytes).map(Cow::Owned)
    }
}

impl Wire for [String; 3] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|text| text.put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        Some([String::get(bytes)?, String::get(bytes)?, String::get(bytes)?])
    }
}

impl<const N: usize> Wire for [u32; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|n| n.put(out));
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let mut numbers = [0; N];
        for n in &mut numbers {
            *n = u32::get(bytes)?;
        }
        Some(numbers)
    }
}

macro_rules! names {
    ($($t:ty),*) => { $(impl Wire for $t {
        fn put(&self, out: &mut Vec<u8>) {
            (*self as u8).put(out);
        }
        fn get(bytes: &mut &[u8]) -> Option<Self> {
            Self::ALL.get(u8::get(bytes)? as usize).copied()
        }
    })* };
}
names!(Tier, Kind, Phase, Reason, KeyKind, FamilyName);

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(bytes: &mut &[u8]) -> Option<Self> {
        if bool::get(bytes)? { Some(Some(T::get(bytes)?)) } else { Some(None) }
    }
}

/// A struct's fields in order. What is counted from the others is left out, and empty when it is read.
macro_rules! fields {
    ($name:ident { $($field:ident: $t:ty),* $(,)? } $(counted $($counted:ident),*)?) => {
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn get(bytes: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: Wire::get(bytes)?,)* $($($counted: Default::default()),*)? })
            }
        }
    };
}
pub(crate) use fields;
