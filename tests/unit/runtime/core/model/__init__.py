"""The core again, naive: dictionaries by path, no tree, no index, everything counted anew.

Read it in this order: records, config, families, keys; pages (the state and what follows from it),
policies, room, finding, holds, moves, computing, sessions, namespaces, observing, hints. Moments
(`now`) differ from call to call, so that no order depends on a tie. It knows no torch, no engine
and no log, and imports nothing but the standard library; `check` proves what must hold of it.

Decided here, because the contract leaves it open:

Matching
- `clipped_by` is the first component, in the order of the configuration, that is not legal at
  `full_pages`. With a grid, the hit is the longest legal length on the grid; the reason is for
  where the match ended without it. `branch` is `full_pages` when the hit is shorter, else 0.
- The next page is compared with the session's path where that goes on, else with what it last
  asked for or committed beyond it, if the tree had no more than the path then; a session that
  never asked stands for nothing, its parent does. The namespace of what is compared decides
  `namespace_changed`. `pending_write` reaches as far as pages were reserved, by what
  the receipt's tokens are known to be since its last commit.
- A page is known to be lost for as long as ghosts go, each page for itself.
- `skip` is refused beyond the path, and where the path is of another namespace.

Computing
- Reserved is what every component has room for that needs each page. Checkpoints come after; where
  room is short, the deepest are planned. `parts` name full as well.
- Committed from another start, reserved pages move along, checkpoints keep their positions.
- New pages continue a node only when the committing lock ends at it. Spot slots have uses of their
  own; what is kept without being needed at the end has none.
- `Commit.parts`: what the other components have on the device in the range, gaps or not.

Moves
- A spot component's moves are of all its slots on the path when going down, of those that the
  receipt holds when going up. `ready` is the longest length that the device alone allows.
- Without a host tier a component goes from the device to storage (offload) and back (load).
- Writing down makes room only among what was used before the oldest of what is written.
- A page's uses admit whatever lies at it. A page that reaches `admit_storage` after its backup is
  offloaded at the next commit of its path, as one whose offload failed. `admission` is the reason
  of the eviction, too.
- A move times out when its age reaches `move_timeout`; so do not reservations. Abandoned, nothing
  of it arrives, and restore does not wait for it.

What is held and what goes
- A spot slot that a receipt or a pin names stays, with or without copies, until it is let go. What
  was missing then is not held when it comes later.
- A damaged copy on the device waits for who holds it: the page's locks, or a spot's holders.
- An orphan that is held, read or awaited goes when it no longer is.
- close, flush and retire drop copies of full; the others follow as orphans.
- Superseded is a node that a session left and no other has; a use ends that. Spot slots are to
  sessions what their node is. A use gives a node the session's priority and ends its expected
  return; what is due may come at any moment.
- tlru judges each page by the longest path that ever went through its node. cost is the position.
- Policies that remember (s3fifo, tlru, cost) are followed beside a core, not foreseen: each victim
  must be one that may go. What they would do alone is written here.

Leases and hints
- All of a session's own leases are renewed by its acquires that cover them, once a sixteenth of
  their time has passed, and hold the slots that are there then. A share counts acquires by
  sessions whose parent shared, and ends with the last. Spot slots of a pin have no budget. retain
  and share answer clipped for what has no bytes.
- Hints see to every component: `pages` and `asked` count full, `pending` counts all that is to
  come, and a hint waits for all of it. A component without a tier below is left where it is.
- `expect` is about the pages of the session's path as it is then. Demote is refused where the
  engine owns the device, and rejected with `no_room` where full has no tier below.

Namespaces
- An open name gives its number again; a retired one gives a new number. Commits under a retired
  namespace work for who holds a receipt, and are dropped when it is released. Pins there do not
  keep what is retired.

An observed device
- Its copies are the engine's: no hint, no close drops them, and pins there are refused. A page that
  the engine still has is not dropped by a flush or close of ours.
- `into` is read from its start by each component, which numbers its pages for itself; pages given
  there, as those observed, hold nothing else from then on, before anything else is seen to. Pages
  that are being loaded into are refused. restore without `into` is refused.
- The first belief about a page stays; a second block for it is a duplicate.
- What is forgotten while it is read or loaded did not arrive, whatever its completion says; nor
  did what was read from a copy that has been found damaged meanwhile.
- Of components other than full only pages known already can be observed; their new slots count as
  healed.
"""

from .config import Component, Config
from .hints import Hints as Model
from .policies import POLICIES
from .records import TIERS

__all__ = ["POLICIES", "TIERS", "Component", "Config", "Model"]
