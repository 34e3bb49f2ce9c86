//! An engine's state rebuilt from its log alone. Runs no policy.

use crate::columns::decode;
use crate::refusal::{Answer, Refusal};
use crate::state::State;

#[derive(Default)]
pub struct Replica {
    pub state: State,
    pub engine: String,
    pub epoch: String,
    /// Why it stopped: a row that does not fit, or a hash that differs. The state is of no use after that.
    pub(crate) broken: Option<String>,
}

impl Replica {
    /// Apply a message; rows applied before are skipped. A message that cannot be read, is of another epoch or
    /// leaves rows out changes nothing. One that does not fit what came before ends the replica.
    pub fn fold(&mut self, payload: &[u8]) -> Answer<u128> {
        if let Some(why) = &self.broken {
            return Err(Refusal::Log(why.clone()));
        }
        let (envelope, rows) = decode(payload).map_err(Refusal::Log)?;
        if !self.epoch.is_empty() && (&envelope.epoch, &envelope.engine) != (&self.epoch, &self.engine) {
            return Err(Refusal::Log(format!(
                "message of {} epoch {}; this replica follows {} epoch {}",
                envelope.engine, envelope.epoch, self.engine, self.epoch
            )));
        }
        let next = self.state.seq + 1;
        if envelope.first > next {
            return Err(Refusal::Log(format!("rows {next} to {} are missing", envelope.first - 1)));
        }
        (self.engine, self.epoch) = (envelope.engine, envelope.epoch);
        if envelope.first + (envelope.rows as u64) <= next {
            return Ok(self.state.hash());
        }
        let applied = rows.iter().filter(|row| row.seq >= next).try_for_each(|row| self.state.apply(row));
        self.state.touched.clear();
        self.state.touched_spots.clear();
        let hash = self.state.hash();
        let fault = match applied {
            Err(fault) => fault,
            Ok(()) if hash == envelope.state_hash => return Ok(hash),
            Ok(()) => format!(
                "after row {} the state's hash is {hash:032x}, the engine's {:032x}",
                self.state.seq, envelope.state_hash
            ),
        };
        self.broken = Some(fault.clone());
        Err(Refusal::Log(fault))
    }
}
