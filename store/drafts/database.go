package drafts

import (
	"context"
	"errors"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// InDatabase returns the drafts in a database that several servers share.
func InDatabase(db *database.DB) Drafts {
	return Drafts{inDatabase{rows{db}, db}, func() int64 { return time.Now().UnixMilli() }}
}

type inDatabase struct {
	rows
	db *database.DB
}

// rows are the drafts as a transaction sees them, or as they are now.
type rows struct {
	q interface {
		database.Querier
		Exec(ctx context.Context, sql string, args ...any) (int64, error)
		SendBatch(ctx context.Context, b *database.Batch) error
	}
}

// read implements writer.
func (r rows) read(ctx context.Context, task string) (api.Draft, error) {
	var data []byte
	there, err := database.Found(r.q.QueryRow(ctx, `SELECT document FROM roost.drafts WHERE task = $1`, task), &data)
	d := empty(task)
	if err == nil && there {
		d, err = decode(task, data)
	}
	return d, api.Failed(err, "read the draft of %q", task)
}

// write implements writer.
func (r rows) write(ctx context.Context, d api.Draft, images map[string]Image) error {
	data, err := api.Encode(d)
	if err != nil {
		return err
	}
	var b database.Batch
	b.Queue(`INSERT INTO roost.drafts (task, revision, document) VALUES ($1, $2, $3)
		ON CONFLICT (task) DO UPDATE SET revision = EXCLUDED.revision, document = EXCLUDED.document`, d.Task, d.Revision, data)
	names := []string{}
	for _, image := range d.Images {
		names = append(names, image.Name)
		if fresh, ok := images[image.Name]; ok {
			b.Queue(`INSERT INTO roost.draft_images (task, name, data) VALUES ($1, $2, $3) ON CONFLICT (task, name) DO UPDATE SET data = EXCLUDED.data`,
				d.Task, image.Name, fresh.Bytes)
		}
	}
	b.Queue(`DELETE FROM roost.draft_images WHERE task = $1 AND NOT name = ANY($2)`, d.Task, names)
	return r.q.SendBatch(ctx, &b)
}

// remove implements writer. The images of a draft go with it.
func (r rows) remove(ctx context.Context, task string) error {
	_, err := r.q.Exec(ctx, `DELETE FROM roost.drafts WHERE task = $1`, task)
	return err
}

// change implements place, with a lock that lasts as long as the transaction.
func (f inDatabase) change(ctx context.Context, task string, do func(writer) error) error {
	err := f.db.Transaction(ctx, func(tx *database.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('the draft of ' || $1, 0))`, task); err != nil {
			return err
		}
		return do(rows{tx})
	})
	if errors.Is(err, ErrMoved) || errors.Is(err, ErrNoImage) {
		return err
	}
	return api.Failed(database.Explained(err), "change a draft")
}

// purge implements place.
func (f inDatabase) purge(ctx context.Context, task string) error {
	_, err := f.db.Exec(ctx, `DELETE FROM roost.drafts WHERE task = $1 OR starts_with(task, $1 || $2)`, task, Person)
	return database.Explained(err)
}

// image implements place.
func (f inDatabase) image(ctx context.Context, task, name string) (data []byte, err error) {
	err = f.db.QueryRow(ctx, `SELECT data FROM roost.draft_images WHERE task = $1 AND name = $2`, task, name).Scan(&data)
	return data, err
}
