-- What lists and searches derived of tasks, see package catalog/postgres. Each of these tables may be emptied at any time,
-- and a crash of the database empties them: what is in them is not worth a log.

CREATE UNLOGGED TABLE roost.catalog_turns (
	name  text PRIMARY KEY,
	turns bigint NOT NULL
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE roost.catalog_sources (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name     bytea  NOT NULL,
	build    bigint NOT NULL,
	seen     bigint NOT NULL,
	body     bytea  NOT NULL,
	checksum bigint NOT NULL,
	UNIQUE (name, build)
);
CREATE UNLOGGED TABLE roost.catalog_rows (
	source   bigint NOT NULL,
	digest   bigint NOT NULL,
	checksum bigint NOT NULL,
	page_checksum bigint NOT NULL,
	name     bytea  NOT NULL,
	body     bytea  NOT NULL,
	title    bytea  NOT NULL,
	summary  bytea  NOT NULL,
	PRIMARY KEY (source, name)
);

CREATE UNLOGGED TABLE roost.catalog_tasks (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	version bigint NOT NULL,
	parts   bigint NOT NULL,
	key     bytea  NOT NULL,
	stamp   bytea  NOT NULL
);
CREATE UNIQUE INDEX catalog_tasks_key ON roost.catalog_tasks (sha256(key), version); -- a key may be too long for an index

-- features are too many to be sampled for statistics, and body is compressed already.
CREATE UNLOGGED TABLE roost.catalog_parts (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task     bigint NOT NULL,
	first    bigint NOT NULL,
	features int4[] NOT NULL,
	body     bytea  NOT NULL
);
ALTER TABLE roost.catalog_parts ALTER features SET STORAGE EXTERNAL, ALTER features SET STATISTICS 0,
	ALTER body SET STORAGE EXTERNAL, ALTER body SET STATISTICS 0;
CREATE INDEX catalog_parts_task ON roost.catalog_parts (task);
CREATE INDEX catalog_parts_features ON roost.catalog_parts USING gin (features);

CREATE UNLOGGED TABLE roost.catalog_words (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	checksum bigint NOT NULL,
	words    bytea  NOT NULL
);
ALTER TABLE roost.catalog_words ALTER words SET STORAGE EXTERNAL;
