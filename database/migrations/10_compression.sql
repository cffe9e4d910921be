-- A commit of 5 KB takes a tenth less time with lz4 than with the default, pglz, which makes lines 5 % smaller. Lines that
-- are stored already stay as they are. A server that was built without lz4 keeps pglz.
DO $$ BEGIN
	IF (SELECT 'lz4' = ANY(enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
		FOR i IN 0..15 LOOP
			EXECUTE format('ALTER TABLE roost.commits_%s ALTER line SET COMPRESSION lz4', i);
		END LOOP;
	END IF;
END $$;
