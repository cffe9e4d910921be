-- What a running server announces to the others, as JSON (api.GroupServer); NULL: the lease is of a part of one.
ALTER TABLE roost.leases ADD COLUMN server bytea;
