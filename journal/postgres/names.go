package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

// Entry is a journal in a list.
type Entry struct {
	Name  string
	Head  uint64
	Epoch uint64
	Held  bool // an owner's lease lasts
}

// List returns the journals whose names begin with prefix and that have commits.
func (j *Journals) List(ctx context.Context, prefix string) ([]Entry, error) {
	rows := j.db.Query(ctx, `
SELECT name, head, epoch, coalesce(lease_until > clock_timestamp(), false) FROM roost.journals
WHERE starts_with(name, $1) AND head > 0`, prefix)
	list, err := database.Collect(rows, func(row database.Scanner) (e Entry, err error) {
		var head, epoch int64
		err = row.Scan(&e.Name, &head, &epoch, &e.Held)
		e.Head, e.Epoch = uint64(head), uint64(epoch)
		return e, err
	})
	return list, api.Failed(err, "list the journals %s", prefix)
}

// Has reports whether there is a journal of this name with commits.
func (j *Journals) Has(ctx context.Context, name string) (has bool, err error) {
	err = j.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM roost.journals WHERE name = $1 AND head > 0)`, name).Scan(&has)
	return has, api.Failed(err, "look for journal %s", name)
}

// Holder returns the record of the owner whose lease of the journal lasts.
func (j *Journals) Holder(ctx context.Context, name string) (info journal.OwnerInfo, held bool, err error) {
	var record []byte
	held, err = database.Found(j.db.QueryRow(ctx, `
SELECT owner FROM roost.journals WHERE name = $1 AND lease_until > clock_timestamp()`, name), &record)
	if err != nil {
		return info, false, fmt.Errorf("look for the owner of journal %s: %w", name, err)
	}
	if held {
		_ = json.Unmarshal(record, &info) // without it the owner has no name
	}
	return info, held, nil
}

// Begin makes a journal that begins with the commits of another one up to seq, and their payloads. It makes all of it
// or nothing.
func (j *Journals) Begin(ctx context.Context, name, from string, seq uint64) error {
	err := j.db.Transaction(ctx, func(tx *database.Tx) error {
		var base, id, epoch int64
		found, err := database.Found(tx.QueryRow(ctx, `SELECT id FROM roost.journals WHERE name = $1 AND head >= $2 FOR KEY SHARE`, from, int64(seq)), &base)
		if err == nil && !found {
			err = fmt.Errorf("%s has no commit %d: %w", from, seq, journal.ErrNotFound)
		}
		if err != nil {
			return err
		}
		// Epochs of the new journal come behind all of the one that it begins with.
		err = tx.QueryRow(ctx, `
INSERT INTO roost.journals (name, head, epoch, base_seqs, base_epochs)
SELECT $1, $2, epoch, base_seqs[:n], base_epochs[:n] FROM roost.journals,
	LATERAL (SELECT count(*) AS n FROM unnest(base_seqs) AS s(seq) WHERE s.seq < $2) AS begins
WHERE id = $3 RETURNING id, epoch`,
			name, int64(seq), base).Scan(&id, &epoch)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
INSERT INTO roost.commits (journal, seq, line) SELECT $1, seq, line FROM roost.commits WHERE journal = $2 AND seq <= $3`,
			id, base, int64(seq)); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO roost.blobs (journal, hash) SELECT $1, hash FROM roost.blobs WHERE journal = $2`, id, base)
		return err
	})
	return api.Failed(database.Explained(err), "begin journal %s with %s", name, from)
}

// Move gives a journal another name. It fails when there is a journal of that name.
func (j *Journals) Move(ctx context.Context, from, to string) error {
	affected, err := j.db.Exec(ctx, `
WITH room AS (DELETE FROM roost.journals WHERE name = $2 AND head = 0 AND coalesce(lease_until < clock_timestamp(), true))
UPDATE roost.journals SET name = $2 WHERE name = $1`, from, to)
	if err == nil && affected == 0 {
		err = journal.ErrNotFound
	}
	return api.Failed(database.Explained(err), "move journal %s to %s", from, to)
}

// Remove removes a journal for good, with the payloads that no other journal names. A missing journal is no error.
func (j *Journals) Remove(ctx context.Context, name string) error {
	err := j.db.Transaction(ctx, func(tx *database.Tx) error {
		var id int64
		found, err := database.Found(tx.QueryRow(ctx, `SELECT id FROM roost.journals WHERE name = $1 FOR UPDATE`, name), &id)
		if err != nil || !found {
			return err
		}
		return removeJournal(ctx, tx, id)
	})
	return api.Failed(database.Explained(err), "remove journal %s", name)
}

func removeJournal(ctx context.Context, tx *database.Tx, id int64) error {
	for _, sql := range []string{
		`DELETE FROM roost.journals WHERE id = $1`,
		`DELETE FROM roost.commits WHERE journal = $1`,
		`DELETE FROM roost.snapshots WHERE journal = $1`,
		`DELETE FROM roost.blobs WHERE journal = $1`,
	} {
		if _, err := tx.Exec(ctx, sql, id); err != nil {
			return err
		}
	}
	return nil
}

// Owned returns the names of the journals that an owner holds with a valid lease.
func (j *Journals) Owned(ctx context.Context) ([]string, error) {
	return j.ownedNames(ctx, `lease_until > clock_timestamp()`)
}

// Lost returns the names of the journals whose owner has died: it has not released them, and its lease has run out.
func (j *Journals) Lost(ctx context.Context) ([]string, error) {
	return j.ownedNames(ctx, `lease_until < clock_timestamp()`)
}

func (j *Journals) ownedNames(ctx context.Context, lease string) ([]string, error) {
	names, err := database.Column[string](j.db.Query(ctx, `
SELECT name FROM roost.journals WHERE owner IS NOT NULL AND `+lease+` ORDER BY name`))
	return names, api.Failed(err, "look for owners of journals")
}
