-- What kvctl keeps, besides `events`, whose columns are those of the log (database.py makes it from
-- telemetry.schema and adds engine, epoch, trust). Times are ns; *_ts and ts since 1970.
-- Everything here can be rebuilt from the segments.

CREATE TABLE IF NOT EXISTS progress (segment UINTEGER NOT NULL, "offset" UBIGINT NOT NULL);
COMMENT ON TABLE progress IS 'The last segment record that these tables contain. One row.';

CREATE TABLE IF NOT EXISTS messages (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, number UBIGINT NOT NULL,
    first UBIGINT NOT NULL, rows UINTEGER NOT NULL, bytes UINTEGER NOT NULL,
    dropped UBIGINT NOT NULL, received_ts BIGINT NOT NULL,
    state_hash VARCHAR NOT NULL, folded_hash VARCHAR, trust VARCHAR NOT NULL
);
COMMENT ON TABLE messages IS
    'Each message received. state_hash is the engine''s, folded_hash ours; null when not folded.';

CREATE TABLE IF NOT EXISTS engines (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, life UINTEGER NOT NULL, address VARCHAR NOT NULL,
    seq UBIGINT NOT NULL, number UBIGINT NOT NULL, rows UBIGINT NOT NULL, messages UBIGINT NOT NULL,
    lag_ms DOUBLE, dropped UBIGINT NOT NULL, gaps UINTEGER NOT NULL, lost_rows UBIGINT NOT NULL,
    trust VARCHAR NOT NULL, state_hash VARCHAR NOT NULL, gapless BOOLEAN NOT NULL,
    first_ts BIGINT NOT NULL, last_ts BIGINT NOT NULL, problem VARCHAR NOT NULL
);
COMMENT ON TABLE engines IS
    'One row per engine and epoch (one life of its process, numbered as they were met). trust: exact = folding every row gives the
engine''s own state_hash; after_gap = rows are missing; mismatch = the hashes differ.';

CREATE TABLE IF NOT EXISTS session_state (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, session VARCHAR NOT NULL, parent VARCHAR NOT NULL,
    open BOOLEAN NOT NULL, pages UINTEGER, device_pages UINTEGER, host_pages UINTEGER,
    storage_pages UINTEGER, shared_pages UINTEGER, leases VARCHAR NOT NULL, last_use BIGINT,
    seq UBIGINT NOT NULL
);
COMMENT ON TABLE session_state IS
    'Sessions as of row seq. leases: JSON list of {lease, tier, owner, pages, expires}.';

CREATE TABLE IF NOT EXISTS pool_state (
    engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL, tier VARCHAR NOT NULL, capacity UBIGINT,
    used UBIGINT, fenced UBIGINT, free UBIGINT, leased UBIGINT, seq UBIGINT NOT NULL
);
COMMENT ON TABLE pool_state IS 'Pages of each owned tier as of row seq.';

CREATE TABLE IF NOT EXISTS actions (
    id VARCHAR NOT NULL, ts BIGINT NOT NULL, engine VARCHAR NOT NULL, epoch VARCHAR NOT NULL,
    operator VARCHAR NOT NULL, verb VARCHAR NOT NULL, args VARCHAR NOT NULL, ok BOOLEAN NOT NULL,
    outcome VARCHAR NOT NULL, reason VARCHAR NOT NULL, detail VARCHAR NOT NULL,
    duration_ns BIGINT NOT NULL
);
COMMENT ON TABLE actions IS 'What operators did, also what failed. args: JSON.';

CREATE OR REPLACE VIEW latest AS
    SELECT * FROM engines QUALIFY row_number() OVER (PARTITION BY engine ORDER BY life DESC) = 1;
COMMENT ON VIEW latest IS 'engines, the latest epoch of each.';

CREATE OR REPLACE VIEW requests AS
    SELECT engine, epoch, request,
        any_value(session) AS session,
        min(ts) AS arrival_ts,
        arg_max(tokens, seq) FILTER (kind = 'match') AS tokens,
        arg_max(device_tokens + host_tokens + storage_tokens, seq) FILTER (kind = 'match')
            AS hit_tokens,
        arg_max(device_tokens, seq) FILTER (kind = 'match') AS device_tokens,
        arg_max(host_tokens, seq) FILTER (kind = 'match') AS host_tokens,
        arg_max(storage_tokens, seq) FILTER (kind = 'match') AS storage_tokens,
        arg_max(coalesce(reason, ''), seq) FILTER (kind = 'match') AS reason,
        max(duration) FILTER (phase = 'first_token') AS ttft_ns,
        max(duration) FILTER (phase IN ('finish', 'abort')) AS duration_ns,
        CASE WHEN bool_or(phase = 'finish') THEN 'finished'
             WHEN bool_or(phase = 'abort') THEN 'aborted' ELSE 'running' END AS state,
        max(seq) FILTER (kind = 'match') AS seq
    FROM events
    WHERE request IS NOT NULL AND (kind = 'request' OR (kind = 'match' AND phase = 'acquire'))
    GROUP BY engine, epoch, request;
COMMENT ON VIEW requests IS
    'One row per request: tokens asked, found (hit_tokens, by tier), why the rest missed, latencies.
seq is its match.';

CREATE OR REPLACE VIEW hit_rate AS
    SELECT engine, epoch, arrival_ts // 60000000000 * 60000000000 AS minute_ts,
        count(*) AS requests, sum(tokens)::BIGINT AS tokens,
        sum(device_tokens)::BIGINT AS device_tokens, sum(host_tokens)::BIGINT AS host_tokens,
        sum(storage_tokens)::BIGINT AS storage_tokens,
        sum(hit_tokens) / nullif(sum(tokens), 0) AS hit_rate
    FROM requests WHERE tokens IS NOT NULL GROUP BY ALL;
COMMENT ON VIEW hit_rate IS 'Per engine and minute: tokens asked and found by tier.';

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

CREATE OR REPLACE VIEW canary AS
    SELECT engine, epoch, seq, ts, phase, reason AS hop, session, request, node, slot_from, pages,
        detail
    FROM events WHERE kind = 'canary';
COMMENT ON VIEW canary IS 'Checks, violations and injected faults; pages checked in pages.';

CREATE OR REPLACE VIEW gaps AS
    SELECT engine, epoch, score AS first, seq AS last, seq::BIGINT - score + 1 AS rows, ts, detail
    FROM events WHERE kind = 'gap';
COMMENT ON VIEW gaps IS 'Rows that were lost. Nothing that depends on them is certain.';
