-- What kvctl keeps, besides `events`, whose columns are those of the log (database.py makes it from
-- telemetry.schema and adds engine, epoch, trust). Times are ns; *_ts and ts since 1970.
-- Everything here can be rebuilt from the segments.
--
-- Every column is documented, in the database itself: `kvctl sql "FROM dictionary"`. A column without
-- a comment of its own here means what the column of that name in `events` means.

CREATE TABLE IF NOT EXISTS progress (segment UINTEGER NOT NULL, "offset" UBIGINT NOT NULL);
COMMENT ON TABLE progress IS 'The last segment record that these tables contain. One row.';
COMMENT ON COLUMN progress.segment IS 'number of the segment file';
COMMENT ON COLUMN progress."offset" IS 'byte at which the record begins';

CREATE TABLE IF NOT EXISTS messages (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, number UBIGINT NOT NULL,
    first UBIGINT NOT NULL, rows UINTEGER NOT NULL, bytes UINTEGER NOT NULL,
    dropped UBIGINT NOT NULL, received_ts BIGINT NOT NULL,
    state_hash VARCHAR NOT NULL, folded_hash VARCHAR, trust VARCHAR NOT NULL
);
COMMENT ON TABLE messages IS
    'Each message received. state_hash is the engine''s, folded_hash ours; null when not folded.';
COMMENT ON COLUMN messages.number IS 'number of the message in its epoch, from 0';
COMMENT ON COLUMN messages.first IS 'seq of its first row';
COMMENT ON COLUMN messages.rows IS 'rows in it';
COMMENT ON COLUMN messages.bytes IS 'size of its payload';
COMMENT ON COLUMN messages.dropped IS 'rows that the engine lost before it, because nobody drained them';
COMMENT ON COLUMN messages.received_ts IS 'when the collector had it';
COMMENT ON COLUMN messages.state_hash IS 'the engine''s hash of its state after the last row';
COMMENT ON COLUMN messages.folded_hash IS 'ours, from folding the log; null when not folded';

CREATE TABLE IF NOT EXISTS engines (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, life UINTEGER NOT NULL, address VARCHAR NOT NULL,
    seq UBIGINT NOT NULL, number UBIGINT NOT NULL, rows UBIGINT NOT NULL, messages UBIGINT NOT NULL,
    dropped UBIGINT NOT NULL, gaps UINTEGER NOT NULL, lost_rows UBIGINT NOT NULL,
    trust VARCHAR NOT NULL, state_hash VARCHAR NOT NULL, gapless BOOLEAN NOT NULL,
    first_ts BIGINT NOT NULL, last_ts BIGINT NOT NULL, problem VARCHAR NOT NULL
);
COMMENT ON TABLE engines IS
    'One row per engine and epoch (one life of its process, numbered as they were met). trust: exact = folding every row gives the
engine''s own state_hash; after_gap = rows are missing; mismatch = the hashes differ.';
COMMENT ON COLUMN engines.life IS 'order in which epochs were met';
COMMENT ON COLUMN engines.address IS 'where it publishes, replays and takes commands';
COMMENT ON COLUMN engines.seq IS 'last row received';
COMMENT ON COLUMN engines.number IS 'last message received, or given up as lost';
COMMENT ON COLUMN engines.rows IS 'rows received';
COMMENT ON COLUMN engines.messages IS 'messages received';
COMMENT ON COLUMN engines.dropped IS 'rows that the engine itself lost';
COMMENT ON COLUMN engines.gaps IS 'stretches of rows that are lost';
COMMENT ON COLUMN engines.lost_rows IS 'rows in them';
COMMENT ON COLUMN engines.state_hash IS 'hash of the state that folding the log gives';
COMMENT ON COLUMN engines.gapless IS 'every row is here and folds';
COMMENT ON COLUMN engines.first_ts IS 'ts of the first row received';
COMMENT ON COLUMN engines.last_ts IS 'ts of the last row received';
COMMENT ON COLUMN engines.problem IS 'what is wrong with this log, or empty';

CREATE TABLE IF NOT EXISTS session_state (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, session VARCHAR NOT NULL, parent VARCHAR NOT NULL,
    open BOOLEAN NOT NULL, pages UINTEGER, device_pages UINTEGER, host_pages UINTEGER,
    storage_pages UINTEGER, fastest_device UINTEGER, fastest_host UINTEGER,
    fastest_storage UINTEGER, shared_pages UINTEGER, leases VARCHAR NOT NULL, last_use BIGINT,
    seq UBIGINT NOT NULL
);
COMMENT ON TABLE session_state IS
    'Sessions as of row seq. leases: JSON list of {lease, tier, owner, pages, expires}.';
COMMENT ON COLUMN session_state.parent IS 'session that this one was spawned from, or empty';
COMMENT ON COLUMN session_state.open IS 'it has not been closed';
COMMENT ON COLUMN session_state.pages IS 'pages of its last committed path';
COMMENT ON COLUMN session_state.device_pages IS 'of those, the ones with a copy on the device';
COMMENT ON COLUMN session_state.host_pages IS '... on the host; a page may count in several tiers';
COMMENT ON COLUMN session_state.storage_pages IS '... in storage';
COMMENT ON COLUMN session_state.fastest_device IS 'pages whose fastest copy is on the device';
COMMENT ON COLUMN session_state.fastest_host IS '... on the host';
COMMENT ON COLUMN session_state.fastest_storage IS '... in storage; what is left of pages has no copy';
COMMENT ON COLUMN session_state.shared_pages IS 'pages that another open session''s path has too';
COMMENT ON COLUMN session_state.leases IS 'JSON list of {lease, tier, owner, pages, expires}';
COMMENT ON COLUMN session_state.last_use IS 'when a request last used it, ns since 1970';
COMMENT ON COLUMN session_state.seq IS 'row as of which this is so';

CREATE TABLE IF NOT EXISTS pool_state (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, tier VARCHAR NOT NULL, capacity UBIGINT,
    used UBIGINT, fenced UBIGINT, free UBIGINT, leased UBIGINT, seq UBIGINT NOT NULL
);
COMMENT ON TABLE pool_state IS 'Pages of each owned tier as of row seq.';
COMMENT ON COLUMN pool_state.tier IS 'device, host or storage';
COMMENT ON COLUMN pool_state.capacity IS 'pages; free + used + fenced';
COMMENT ON COLUMN pool_state.used IS 'pages that hold something';
COMMENT ON COLUMN pool_state.fenced IS 'pages being written';
COMMENT ON COLUMN pool_state.free IS 'pages for the taking';
COMMENT ON COLUMN pool_state.leased IS 'used pages that leases hold';
COMMENT ON COLUMN pool_state.seq IS 'row as of which this is so';

CREATE TABLE IF NOT EXISTS actions (
    id VARCHAR NOT NULL, ts BIGINT NOT NULL, engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL,
    operator VARCHAR NOT NULL, verb VARCHAR NOT NULL, args VARCHAR NOT NULL, ok BOOLEAN NOT NULL,
    outcome VARCHAR NOT NULL, reason VARCHAR NOT NULL, detail VARCHAR NOT NULL,
    duration_ns BIGINT NOT NULL
);
COMMENT ON TABLE actions IS 'What operators did, also what failed. args: JSON.';
COMMENT ON COLUMN actions.id IS 'key of the action';
COMMENT ON COLUMN actions.ts IS 'when it was asked for';
COMMENT ON COLUMN actions.operator IS 'who asked';
COMMENT ON COLUMN actions.verb IS 'what for';
COMMENT ON COLUMN actions.args IS 'JSON of its arguments';
COMMENT ON COLUMN actions.ok IS 'the engine did not refuse and nothing failed';
COMMENT ON COLUMN actions.outcome IS 'accepted, clipped, deferred, rejected, done, or the code of an error';
COMMENT ON COLUMN actions.reason IS 'why it was clipped or rejected';
COMMENT ON COLUMN actions.detail IS 'the engine''s answer as JSON, or the error';
COMMENT ON COLUMN actions.duration_ns IS 'until the answer';

CREATE OR REPLACE VIEW latest AS
    SELECT * FROM engines QUALIFY row_number() OVER (PARTITION BY engine ORDER BY life DESC) = 1;
COMMENT ON VIEW latest IS 'engines, the latest epoch of each.';

CREATE OR REPLACE VIEW requests AS
    SELECT engine, epoch, request, session,
        min(ts) AS arrival_ts,
        arg_max(tokens, seq) FILTER (kind = 'match') AS tokens,
        arg_max(device_tokens + host_tokens + storage_tokens, seq) FILTER (kind = 'match')
            AS hit_tokens,
        arg_max(device_tokens, seq) FILTER (kind = 'match') AS device_tokens,
        arg_max(host_tokens, seq) FILTER (kind = 'match') AS host_tokens,
        arg_max(storage_tokens, seq) FILTER (kind = 'match') AS storage_tokens,
        arg_max(coalesce(tokens, 0), seq) FILTER (phase = 'start') AS saved_tokens,
        arg_max(coalesce(reason, ''), seq) FILTER (kind = 'match') AS reason,
        max(duration) FILTER (phase = 'first_token') AS ttft_ns,
        max(duration) FILTER (phase IN ('finish', 'abort')) AS duration_ns,
        CASE WHEN bool_or(phase = 'finish') THEN 'finished'
             WHEN bool_or(phase = 'abort') THEN 'aborted' ELSE 'running' END AS state,
        max(seq) FILTER (kind = 'match') AS seq
    FROM events
    WHERE request IS NOT NULL AND (kind = 'request' OR (kind = 'match' AND phase = 'acquire'))
    GROUP BY engine, epoch, session, request;
COMMENT ON VIEW requests IS
    'One row per session and name of a request: tokens asked, found (hit_tokens, by tier), really taken from the cache
(saved_tokens), why the rest missed, latencies. seq is its match.';
COMMENT ON COLUMN requests.arrival_ts IS 'when it came';
COMMENT ON COLUMN requests.tokens IS 'tokens of its prompt';
COMMENT ON COLUMN requests.hit_tokens IS 'tokens found in any tier';
COMMENT ON COLUMN requests.saved_tokens IS 'tokens read from the cache, so not computed again: fewer than were found when a move failed or a copy was damaged; null until it has read them';
COMMENT ON COLUMN requests.reason IS 'why the first page after the match missed';
COMMENT ON COLUMN requests.ttft_ns IS 'from arrival to first token';
COMMENT ON COLUMN requests.duration_ns IS 'from arrival to its end';
COMMENT ON COLUMN requests.state IS 'running, finished or aborted';
COMMENT ON COLUMN requests.seq IS 'row of its match';

CREATE OR REPLACE VIEW hit_rate AS
    SELECT engine, epoch, arrival_ts // 60000000000 * 60000000000 AS minute_ts,
        count(*) AS requests, sum(tokens)::BIGINT AS tokens,
        sum(device_tokens)::BIGINT AS device_tokens, sum(host_tokens)::BIGINT AS host_tokens,
        sum(storage_tokens)::BIGINT AS storage_tokens,
        sum(saved_tokens)::BIGINT AS saved_tokens,
        sum(saved_tokens) / nullif(sum(tokens) FILTER (saved_tokens IS NOT NULL), 0) AS hit_rate
    FROM requests WHERE tokens IS NOT NULL GROUP BY ALL;
COMMENT ON VIEW hit_rate IS 'Per engine and minute: tokens asked, found by tier, and not computed again.';
COMMENT ON COLUMN hit_rate.minute_ts IS 'start of the minute';
COMMENT ON COLUMN hit_rate.requests IS 'requests that came in it';
COMMENT ON COLUMN hit_rate.tokens IS 'tokens of their prompts';
COMMENT ON COLUMN hit_rate.device_tokens IS 'tokens found on the device';
COMMENT ON COLUMN hit_rate.host_tokens IS '... on the host';
COMMENT ON COLUMN hit_rate.storage_tokens IS '... in storage';
COMMENT ON COLUMN hit_rate.saved_tokens IS 'tokens not computed again';
COMMENT ON COLUMN hit_rate.hit_rate IS 'their share, in requests that have read what they found';

CREATE OR REPLACE VIEW evictions AS
    SELECT e.engine, e.epoch, e.seq, e.ts, e.tier_from AS tier, e.phase = 'kept' AS kept,
        e.reason, e.policy, e.pages, e.slot_from, e.node, e.session AS last_user, e.score,
        e.clock - e.score AS idle_ns, e.skipped, e.cause, e.detail,
        c.kind AS for_kind, c.phase AS for_phase, c.session AS for_session,
        c.request AS for_request, c.ts AS for_ts
    FROM events e
    LEFT JOIN events c ON c.engine = e.engine AND c.epoch = e.epoch AND c.seq = e.cause
        AND c.kind <> 'gap'
    WHERE e.kind = 'evict';
COMMENT ON VIEW evictions IS
    'Copies that left a tier, and for whom: the row (cause) that needed the room.';
COMMENT ON COLUMN evictions.tier IS 'tier that the copy left';
COMMENT ON COLUMN evictions.kept IS 'another tier still has the pages';
COMMENT ON COLUMN evictions.reason IS 'why';
COMMENT ON COLUMN evictions.last_user IS 'session that used the pages last';
COMMENT ON COLUMN evictions.score IS 'what the policy went by: when they were last used';
COMMENT ON COLUMN evictions.idle_ns IS 'since then';
COMMENT ON COLUMN evictions.for_kind IS 'kind of the row that needed the room (cause)';
COMMENT ON COLUMN evictions.for_phase IS 'its phase';
COMMENT ON COLUMN evictions.for_session IS 'its session';
COMMENT ON COLUMN evictions.for_request IS 'its request';
COMMENT ON COLUMN evictions.for_ts IS 'its time';

CREATE OR REPLACE VIEW transfers AS
    SELECT engine, epoch, op, any_value(kind) AS kind,
        any_value(tier_from) AS tier_from, any_value(tier_to) AS tier_to,
        any_value(session) AS session, min(ts) AS ts,
        sum(pages) FILTER (phase = 'reserve')::BIGINT AS pages,
        max(bytes) FILTER (phase = 'done') AS bytes,
        max(duration) FILTER (phase = 'done') AS duration_ns,
        max(bytes) FILTER (phase = 'done') * 1e9
            / nullif(max(duration) FILTER (phase = 'done'), 0) AS bytes_per_s,
        bool_or(phase IN ('fail', 'abort')) AS failed
    FROM events
    WHERE kind IN ('backup', 'load', 'offload', 'prefetch') AND op IS NOT NULL
    GROUP BY engine, epoch, op;
COMMENT ON VIEW transfers IS 'One row per move between tiers. failed: some of its pages did not arrive.';
COMMENT ON COLUMN transfers.kind IS 'backup, load, offload or prefetch';
COMMENT ON COLUMN transfers.session IS 'session for which it was made';
COMMENT ON COLUMN transfers.ts IS 'when it was asked for';
COMMENT ON COLUMN transfers.pages IS 'pages to move';
COMMENT ON COLUMN transfers.duration_ns IS 'of the move';
COMMENT ON COLUMN transfers.bytes_per_s IS 'its bandwidth';
COMMENT ON COLUMN transfers.failed IS 'some of its pages did not arrive';

CREATE OR REPLACE VIEW canary AS
    SELECT engine, epoch, seq, ts, phase, reason AS hop, session, request, node, slot_from, pages,
        detail
    FROM events WHERE kind = 'canary';
COMMENT ON VIEW canary IS 'Checks, violations and injected faults; pages checked in pages.';
COMMENT ON COLUMN canary.phase IS 'check, violation or inject';
COMMENT ON COLUMN canary.hop IS 'where: backup, load, offload, prefetch, read or sweep';
COMMENT ON COLUMN canary.session IS 'for a violation, who used the page last';
COMMENT ON COLUMN canary.pages IS 'pages checked, damaged or injected';
COMMENT ON COLUMN canary.slot_from IS 'slot of a damaged page';
COMMENT ON COLUMN canary.detail IS 'JSON: tier, page, position, and what differs';

CREATE OR REPLACE VIEW gaps AS
    SELECT engine, epoch, score AS first, seq AS last, seq::BIGINT - score + 1 AS rows, ts, detail
    FROM events WHERE kind = 'gap';
COMMENT ON VIEW gaps IS 'Rows that were lost. Nothing that depends on them is certain.';
COMMENT ON COLUMN gaps.first IS 'first row that is lost';
COMMENT ON COLUMN gaps.last IS 'last row that is lost';
COMMENT ON COLUMN gaps.rows IS 'how many';
COMMENT ON COLUMN gaps.ts IS 'ts of the row after them';
COMMENT ON COLUMN gaps.detail IS 'why they are lost';

CREATE OR REPLACE VIEW dictionary AS
    WITH columns AS (SELECT * FROM duckdb_columns() WHERE NOT internal)
    SELECT c.table_name, c.column_name, c.data_type,
        coalesce(c.comment, l.comment, e.comment) AS meaning
    FROM columns c
    LEFT JOIN columns l
        ON c.table_name = 'latest' AND l.table_name = 'engines' AND l.column_name = c.column_name
    LEFT JOIN columns e ON e.table_name = 'events' AND e.column_name = c.column_name
    ORDER BY c.table_name, c.column_index;
COMMENT ON VIEW dictionary IS 'What every column of every table and view means.';
COMMENT ON COLUMN dictionary.table_name IS 'the table or view';
COMMENT ON COLUMN dictionary.column_name IS 'a column of it';
COMMENT ON COLUMN dictionary.data_type IS 'its DuckDB type';
COMMENT ON COLUMN dictionary.meaning IS 'what it says';
