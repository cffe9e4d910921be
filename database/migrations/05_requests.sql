-- What servers that share a database know of their users. See packages store/drafts, server/idempotency
-- and server/devices.

CREATE TABLE roost.drafts (
	task     text PRIMARY KEY,
	revision text  NOT NULL,
	document bytea NOT NULL
);
CREATE TABLE roost.draft_images (
	task text  NOT NULL REFERENCES roost.drafts ON DELETE CASCADE,
	name text  NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (task, name)
);

CREATE TABLE roost.requests (
	key    bytea PRIMARY KEY,
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	intent bytea NOT NULL,
	answer bytea,
	lease  bigint REFERENCES roost.leases ON DELETE SET NULL
);
CREATE INDEX requests_at ON roost.requests (at);
CREATE INDEX requests_lease ON roost.requests (lease) WHERE lease IS NOT NULL;

CREATE TABLE roost.devices (
	token      bytea  NOT NULL,
	id         text   NOT NULL,
	name       text   NOT NULL,
	address    text   NOT NULL,
	first_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
	last_seen  timestamptz NOT NULL DEFAULT clock_timestamp(),
	until      timestamptz NOT NULL,
	account    text NOT NULL, -- the id of the token of the account that it is logged in for; '' without accounts
	PRIMARY KEY (token, id)
);
CREATE TABLE roost.login_links (
	token bytea NOT NULL,
	key   bytea NOT NULL,
	until timestamptz NOT NULL,
	account text NOT NULL,
	PRIMARY KEY (token, key)
);
