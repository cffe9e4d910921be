-- A journal that came from files may begin with the lines of another one, behind which its own lines are numbered from 1
-- again. Each pair is a journal.Base; NULL: there is none. See journal.Stored.
ALTER TABLE roost.journals ADD COLUMN base_seqs bigint[], ADD COLUMN base_epochs bigint[];
