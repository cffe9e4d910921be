-- The group of servers that share this database. See package store/rootkey.

CREATE TABLE roost.groups (
	one bool PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
	id  uuid NOT NULL,
	key text NOT NULL -- the id of the key that signs its journals
);
