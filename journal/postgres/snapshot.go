package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

// snapshotMAC is the purpose of the signature of a snapshot.
const snapshotMAC = "postgres snapshot"

// Snapshot implements journal.Reader. It ignores a snapshot of another log, or of a commit whose line differs now.
func (r *reader) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if err := r.check(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	var seq int64
	var sha, mac, data, text []byte
	var key string
	found, err := database.Found(r.in.db.QueryRow(ctx, `
SELECT s.seq, s.line_sha, s.key, s.mac, s.data, c.line FROM roost.snapshots s
JOIN roost.commits c ON c.journal = s.journal AND c.seq = s.seq WHERE s.journal = $1`, r.id), &seq, &sha, &key, &mac, &data, &text)
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("read the snapshot of journal %s: %w", r.name, err)
	}
	sum := sha256.Sum256(text)
	if !found || !bytes.Equal(sha, sum[:]) || r.seal != nil && !r.seal.Proves(key, mac, snapshotMAC, sha, data) {
		return journal.Snapshot{}, fmt.Errorf("journal %s: %w", r.name, journal.ErrNoSnapshot)
	}
	return journal.Snapshot{Seq: uint64(seq), Data: data}, nil
}

// SaveSnapshot implements journal.Owner.
func (o *owner) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if err := o.check(ctx); err != nil {
		return err
	}
	batch, err := o.lines(ctx, s.Seq, s.Seq, 1, false)
	if err != nil {
		return err
	}
	if len(batch) == 0 {
		return fmt.Errorf("save a snapshot of journal %s: it has no commit %d", o.name, s.Seq)
	}
	sum := sha256.Sum256(batch[0].Text)
	key, mac := o.seal.MAC(snapshotMAC, sum[:], s.Data)
	if mac == nil {
		mac = []byte{}
	}
	data := s.Data
	if data == nil {
		data = []byte{}
	}
	_, err = o.in.db.Exec(ctx, `
INSERT INTO roost.snapshots (journal, seq, line_sha, key, mac, data)
SELECT id, $3, $4, $5, $6, $7 FROM roost.journals WHERE id = $1 AND epoch = $2
ON CONFLICT (journal) DO UPDATE SET (seq, line_sha, key, mac, data) = (EXCLUDED.seq, EXCLUDED.line_sha, EXCLUDED.key, EXCLUDED.mac, EXCLUDED.data)`,
		o.id, int64(o.Epoch()), int64(s.Seq), sum[:], key, mac, data)
	return api.Failed(database.Explained(err), "save a snapshot of journal %s", o.name)
}
