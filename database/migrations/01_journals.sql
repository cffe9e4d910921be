-- Journals: a row a journal, its commits, its payloads, its derived snapshot. See package journal/postgres.

CREATE TABLE roost.journals (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name        text NOT NULL UNIQUE,
	epoch       bigint NOT NULL DEFAULT 0,
	head        bigint NOT NULL DEFAULT 0,
	owner       bytea,
	lease_until timestamptz
) WITH (fillfactor = 50);
CREATE INDEX ON roost.journals (id) WHERE owner IS NOT NULL; -- few are owned; no commit changes it

CREATE TABLE roost.commits (
	journal bigint NOT NULL,
	seq     bigint NOT NULL,
	line    bytea  NOT NULL,
	PRIMARY KEY (journal, seq)
) PARTITION BY HASH (journal);
DO $$ BEGIN
	FOR i IN 0..15 LOOP
		EXECUTE format('CREATE TABLE roost.commits_%s PARTITION OF roost.commits FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i);
	END LOOP;
END $$;

CREATE TABLE roost.contents (
	hash bytea PRIMARY KEY,
	size bigint NOT NULL
);
CREATE TABLE roost.chunks (
	hash bytea  NOT NULL,
	n    bigint NOT NULL,
	data bytea  NOT NULL,
	PRIMARY KEY (hash, n)
);
CREATE TABLE roost.blobs (
	journal bigint NOT NULL,
	hash    bytea  NOT NULL,
	PRIMARY KEY (journal, hash)
);

CREATE TABLE roost.snapshots (
	journal  bigint PRIMARY KEY,
	seq      bigint NOT NULL,
	line_sha bytea  NOT NULL,
	key      text   NOT NULL,
	mac      bytea  NOT NULL,
	data     bytea  NOT NULL
);
