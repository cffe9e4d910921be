package drafts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// InDatabase returns the drafts in a database that several servers share.
func InDatabase(db *database.DB) Drafts { return inDatabase{db} }

type inDatabase struct{ db *database.DB }

// read reads the draft of a task with a statement about it.
func read(ctx context.Context, q database.Querier, task, sql string) (api.Draft, error) {
	var data []byte
	there, err := database.Found(q.QueryRow(ctx, sql, task), &data)
	d := empty(task)
	if err == nil && there {
		d, err = decode(task, data)
	}
	return d, api.Failed(err, "read the draft of %q", task)
}

const readDraft = `SELECT document FROM roost.drafts WHERE task = $1`

// Read implements Drafts.
func (f inDatabase) Read(ctx context.Context, task string) (api.Draft, error) {
	return read(ctx, f.db, task, readDraft)
}

// errAgain: another server made the draft at this moment.
var errAgain = errors.New("the draft was made at this moment")

// Change implements Drafts.
func (f inDatabase) Change(ctx context.Context, d api.Draft, base string, images map[string]Image) (out api.Draft, err error) {
	for {
		err := f.db.Transaction(ctx, func(tx *database.Tx) (err error) {
			is, err := read(ctx, tx, d.Task, readDraft+` FOR UPDATE`)
			if err != nil {
				out = is
				return err
			}
			out, err = judged(is, d, base, images)
			switch {
			case err != nil || out.Revision == is.Revision:
				return err
			case out.Revision == "":
				_, err = tx.Exec(ctx, `DELETE FROM roost.drafts WHERE task = $1 AND revision = $2`, d.Task, is.Revision)
				return err
			}
			out.Changed = api.Date(time.Now().UnixMilli())
			return write(ctx, tx, out, is.Revision, images)
		})
		switch {
		case errors.Is(err, errAgain):
			continue
		case err != nil && !errors.Is(err, ErrMoved) && !errors.Is(err, ErrNoImage):
			err = fmt.Errorf("keep a draft: %w", database.Explained(err))
		}
		return out, err
	}
}

// write replaces the draft that has the revision base by d, adds its new images, and removes the images that d does
// not name.
func write(ctx context.Context, tx *database.Tx, d api.Draft, base string, images map[string]Image) error {
	data, err := api.Encode(d)
	if err != nil {
		return err
	}
	sql := `UPDATE roost.drafts SET revision = $2, document = $3 WHERE task = $1 AND revision = $4`
	if base == "" {
		sql = `INSERT INTO roost.drafts (task, revision, document) SELECT $1, $2, $3 WHERE $4 = '' ON CONFLICT DO NOTHING`
	}
	done, err := tx.Exec(ctx, sql, d.Task, d.Revision, data, base)
	if err != nil {
		return err
	}
	if done == 0 {
		return errAgain
	}
	names := []string{}
	var b database.Batch
	for _, image := range d.Images {
		names = append(names, image.Name)
		if fresh, ok := images[image.Name]; ok {
			b.Queue(`INSERT INTO roost.draft_images (task, name, data) VALUES ($1, $2, $3) ON CONFLICT (task, name) DO UPDATE SET data = EXCLUDED.data`,
				d.Task, image.Name, fresh.Bytes)
		}
	}
	b.Queue(`DELETE FROM roost.draft_images WHERE task = $1 AND NOT name = ANY($2)`, d.Task, names)
	return tx.SendBatch(ctx, &b)
}

// Remove implements Drafts.
func (f inDatabase) Remove(ctx context.Context, task, revision string) error {
	var removed, there bool
	err := f.db.QueryRow(ctx, `
WITH gone AS (DELETE FROM roost.drafts WHERE task = $1 AND ($2 = '' OR revision = $2) RETURNING task)
SELECT EXISTS (SELECT FROM gone), EXISTS (SELECT FROM roost.drafts WHERE task = $1)`, task, revision).Scan(&removed, &there)
	switch {
	case err != nil:
		return fmt.Errorf("remove a draft: %w", database.Explained(err))
	case there && !removed:
		return ErrMoved
	}
	return nil
}

// Purge implements Drafts.
func (f inDatabase) Purge(ctx context.Context, task string) error {
	_, err := f.db.Exec(ctx, `DELETE FROM roost.drafts WHERE task = $1 OR starts_with(task, $1 || $2)`, task, Person)
	return database.Explained(err)
}

// ReadImage implements Drafts.
func (f inDatabase) ReadImage(ctx context.Context, task, name string) (Image, error) {
	d, err := f.Read(ctx, task)
	if err != nil {
		return Image{}, err
	}
	return imageOf(d, name, func() (data []byte, err error) {
		err = f.db.QueryRow(ctx, `SELECT data FROM roost.draft_images WHERE task = $1 AND name = $2`, task, name).Scan(&data)
		return data, err
	})
}
