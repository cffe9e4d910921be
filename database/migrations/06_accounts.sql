-- Accounts: people and teams, their tokens, and the audit trail. See package accounts.

CREATE TABLE roost.accounts (
	id         text PRIMARY KEY,
	kind       text NOT NULL CHECK (kind IN ('person', 'team')),
	name       text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	removed_at timestamptz
);
CREATE UNIQUE INDEX accounts_name ON roost.accounts (name) WHERE removed_at IS NULL;

CREATE TABLE roost.memberships (
	team   text NOT NULL REFERENCES roost.accounts,
	person text NOT NULL REFERENCES roost.accounts,
	PRIMARY KEY (person, team)
);

CREATE TABLE roost.tokens (
	id           text PRIMARY KEY,
	account      text NOT NULL REFERENCES roost.accounts,
	name         text NOT NULL,
	hash         bytea NOT NULL UNIQUE,
	scopes       text[] NOT NULL,
	created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
	expires_at   timestamptz,
	last_used_at timestamptz,
	revoked_at   timestamptz
);
CREATE UNIQUE INDEX tokens_name ON roost.tokens (account, name) WHERE revoked_at IS NULL;

CREATE TABLE roost.audit (
	id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	account text NOT NULL,
	token   text NOT NULL,
	act     text NOT NULL,
	task    text NOT NULL,
	address text NOT NULL,
	request text NOT NULL
);
-- What came of an entry: it is known later, and entries do not change.
CREATE TABLE roost.audit_outcomes (
	entry  bigint PRIMARY KEY REFERENCES roost.audit,
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	status int NOT NULL,
	task   text NOT NULL -- that it made; '' = none
);

CREATE FUNCTION roost.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'the audit trail only grows';
END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON roost.audit
	FOR EACH STATEMENT EXECUTE FUNCTION roost.refuse_change();
CREATE TRIGGER audit_outcomes_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON roost.audit_outcomes
	FOR EACH STATEMENT EXECUTE FUNCTION roost.refuse_change();
