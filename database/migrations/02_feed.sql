-- The order in which commits of all journals were announced. See package store/feed/postgres.

CREATE TABLE roost.feed_state (
	one   bool PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
	name  text   NOT NULL, -- another feed has another one
	birth bigint NOT NULL, -- in Unix milliseconds
	last  bigint NOT NULL  -- the newest line
) WITH (fillfactor = 10);

CREATE TABLE roost.feed_heads (
	journal      text   PRIMARY KEY,
	epoch        bigint NOT NULL, -- how far the journal is announced
	head         bigint NOT NULL,
	first        bigint NOT NULL, -- of its newest line
	before_epoch bigint,          -- the same before its newest line
	before_head  bigint
) WITH (fillfactor = 50);

CREATE TABLE roost.feed (
	id           bigint PRIMARY KEY, -- without gaps, visible in their order
	journal      text   NOT NULL,
	epoch        bigint NOT NULL,
	first        bigint NOT NULL,
	last         bigint NOT NULL,
	ends         bool   NOT NULL,
	before_epoch bigint,          -- how far the journal was announced before this line; NULL: not at all
	before_head  bigint
);
