-- What is kept beside journals: leases of running servers, and content stores. See packages database/lease,
-- database/payload and content/postgres.

CREATE TABLE roost.leases (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Payloads are compressed before they come.
ALTER TABLE roost.chunks ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE roost.contents ADD COLUMN stored bigint NOT NULL DEFAULT 0;
UPDATE roost.contents SET stored = size;
-- A payload stays while something names it: the database itself sees to that.
ALTER TABLE roost.chunks ADD FOREIGN KEY (hash) REFERENCES roost.contents ON DELETE CASCADE;
ALTER TABLE roost.blobs ADD FOREIGN KEY (hash) REFERENCES roost.contents;
CREATE INDEX blobs_hash ON roost.blobs (hash);

CREATE TABLE roost.content_stores (
	id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name  text NOT NULL UNIQUE,
	bytes bigint NOT NULL DEFAULT 0
);
CREATE TABLE roost.kept (
	store    integer NOT NULL REFERENCES roost.content_stores,
	hash     bytea   NOT NULL REFERENCES roost.contents,
	manifest boolean NOT NULL,
	PRIMARY KEY (store, hash)
);
CREATE INDEX kept_hash ON roost.kept (hash);
CREATE TABLE roost.manifests (
	manifest bytea NOT NULL REFERENCES roost.contents ON DELETE CASCADE,
	hash     bytea NOT NULL,
	PRIMARY KEY (manifest, hash)
);
CREATE TABLE roost.owners (
	store    integer NOT NULL,
	owner    text    NOT NULL,
	manifest bytea   NOT NULL,
	at       timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (store, owner),
	FOREIGN KEY (store, manifest) REFERENCES roost.kept
);
CREATE INDEX owners_manifest ON roost.owners (store, manifest);
CREATE TABLE roost.held (
	lease  bigint  NOT NULL REFERENCES roost.leases ON DELETE CASCADE,
	holder bigint  NOT NULL,
	store  integer NOT NULL,
	hash   bytea   NOT NULL,
	PRIMARY KEY (lease, holder, hash)
);
CREATE INDEX held_store ON roost.held (store);
