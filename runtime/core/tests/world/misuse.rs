//! What nobody should say.

use std::borrow::Cow;

use _core::command::Command;
use _core::names::Reason;

use super::{Reserved, Step, World, bytes};

impl World {
    /// Whatever is said, the answer is a typed refusal.
    pub(super) fn misuse(&mut self, step: &Step) {
        let none = || Cow::Borrowed(&[] as &[u8]);
        let nonsense = [
            Command::Release { receipt: u64::MAX },
            Command::Restore { receipt: 0, into: None },
            Command::Reserve { receipt: u64::MAX - step.a as u64, pages: u32::MAX, start: None },
            Command::Commit { op: u64::MAX, key: none(), skip: 0, start: u32::MAX, pages: u32::MAX },
            Command::Abort { op: u64::MAX, reason: Reason::None },
            Command::Complete {
                op: u64::MAX,
                results: vec![9],
                bytes: u64::MAX,
                duration: i64::MIN,
                detail: String::new(),
            },
            Command::Unpin { lease: u64::MAX },
            Command::CloseSession { session: "nobody".into() },
            Command::Flush { session: String::new(), owner: String::new() },
            Command::Retire { namespace: 99 },
            Command::Share { session: "s0".into(), forks: 0, ttl: 1, owner: String::new() },
            Command::Expect { session: "nobody".into(), at: 1 },
            Command::Observe {
                receipt: u64::MAX,
                key: none(),
                skip: 9,
                start: 9,
                blocks: vec![1, 1],
                component: 0,
            },
        ];
        assert!(self.run(nonsense[step.b as usize % nonsense.len()].clone()).is_err());
        let far = Command::Acquire {
            session: "s0".into(),
            request: "r".into(),
            namespace: 0,
            skip: u32::MAX,
            key: none(),
            grid: 1,
        };
        assert!(self.run(far).is_err());
        if let Some(request) = self.requests.first() {
            let (receipt, held) = (request.receipt, request.held);
            if let Some(Reserved { op, .. }) = request.reserved.clone() {
                let bad = Command::Commit { op, key: bytes(&[9, 9, 9]), skip: 0, start: held + 1, pages: 1 };
                assert!(self.run(bad).is_err());
                let far = Command::Commit { op, key: bytes(&[9, 9]), skip: held + 1, start: held, pages: 0 };
                assert!(self.run(far).is_err());
            }
            let beyond = Command::Reserve { receipt, pages: 1, start: Some(held + 1) };
            assert!(self.run(beyond).is_err());
        }
    }
}
