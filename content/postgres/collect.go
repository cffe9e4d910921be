package postgres

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
	"github.com/roost-dev/roost/database/payload"
	"github.com/roost-dev/roost/internal/failpoint"
)

// reach returns the beginning of a statement about store $1: a query for the contents that the roots reach.
func reach(roots string) string {
	return `
WITH RECURSIVE reach (hash) AS (
	` + roots + `
	UNION
	SELECT m.hash FROM reach r
	JOIN roost.kept k ON k.store = $1 AND k.hash = r.hash AND k.manifest
	JOIN roost.manifests m ON m.manifest = r.hash
)`
}

// Reaches implements content.Store.
func (s *Store) Reaches(ctx context.Context, owner string) (contents int, bytes int64, err error) {
	if _, err := s.Name(ctx, owner); err != nil {
		return 0, 0, err
	}
	id, err := s.row(ctx)
	missing := 0
	if err == nil {
		err = s.in.db.QueryRow(ctx, reach(`SELECT manifest FROM roost.owners WHERE store = $1 AND owner = $2`)+`
SELECT count(k.hash), COALESCE(sum(c.stored), 0)::bigint, count(*) - count(k.hash)
FROM reach r LEFT JOIN roost.kept k ON k.store = $1 AND k.hash = r.hash LEFT JOIN roost.contents c ON c.hash = k.hash`, id, owner).
			Scan(&contents, &bytes, &missing)
	}
	if err == nil && missing > 0 {
		err = fmt.Errorf("%w: %d contents are missing", content.ErrDamaged, missing)
	}
	return contents, bytes, api.Failed(err, "what %s reaches", owner)
}

// needed selects the roots of the contents that stay: the names, except those of the owners $3, the held contents,
// and the contents $2.
const needed = `
	SELECT manifest FROM roost.owners WHERE store = $1 AND NOT owner = ANY($3)
	UNION SELECT h.hash FROM roost.held h JOIN roost.leases l ON l.id = h.lease WHERE h.store = $1 AND l.lease_until > clock_timestamp()
	UNION SELECT unnest($2::bytea[])`

// Collect implements content.Store.
func (s *Store) Collect(ctx context.Context, o content.CollectOptions) (done content.Collected, err error) {
	id, err := s.row(ctx)
	if id != 0 && err == nil {
		done, err = s.collect(ctx, id, o)
	}
	if err != nil {
		return content.Collected{}, fmt.Errorf("remove unused contents: %w", database.Explained(err))
	}
	return done, nil
}

func (s *Store) collect(ctx context.Context, id int32, o content.CollectOptions) (done content.Collected, err error) {
	// First without the lock: mostly there is nothing to remove, and no writer has to wait.
	would, err := s.unused(ctx, s.in.db, id, o)
	if err != nil || o.DryRun {
		return would, err
	}
	if would.Removed == 0 {
		return would, payload.Sweep(ctx, s.in.db)
	}
	err = s.in.db.Transaction(ctx, func(tx *database.Tx) (err error) {
		done, err = s.remove(ctx, tx, id, o)
		failpoint.Hit("content.postgres.collect.written")
		return err
	})
	if err != nil {
		return done, err
	}
	failpoint.Hit("content.postgres.collect.removed")
	return done, payload.Sweep(ctx, s.in.db)
}

// roots returns the contents that CollectOptions.Keep names, and the owners that a dry run leaves out.
func roots(o content.CollectOptions) (keep [][]byte, without []string, err error) {
	keep, without = [][]byte{}, []string{}
	if o.DryRun {
		without = append(without, o.Without...)
	}
	if o.Keep == nil {
		return keep, without, nil
	}
	more, err := o.Keep()
	for _, h := range more {
		if k, bad := h.Key(); bad == nil {
			keep = append(keep, k[:])
		}
	}
	return keep, without, err
}

// unused counts what a collection would remove.
func (s *Store) unused(ctx context.Context, q database.Querier, id int32, o content.CollectOptions) (would content.Collected, err error) {
	keep, without, err := roots(o)
	if err != nil {
		return would, err
	}
	if err := s.whole(ctx, q, id, without); err != nil {
		return would, err
	}
	var bytes int64
	err = q.QueryRow(ctx, reach(needed)+`
SELECT count(r.hash), count(*) - count(r.hash), COALESCE(sum(c.stored) FILTER (WHERE r.hash IS NULL), 0)::bigint,
	(SELECT bytes FROM roost.content_stores WHERE id = $1)
FROM roost.kept k JOIN roost.contents c ON c.hash = k.hash LEFT JOIN reach r ON r.hash = k.hash WHERE k.store = $1`, id, keep, without).
		Scan(&would.Kept, &would.Removed, &bytes, &would.Before)
	would.After = would.Before - bytes
	return would, err
}

// whole fails when a content that a name reaches is missing.
func (s *Store) whole(ctx context.Context, q database.Querier, id int32, without []string) error {
	var hash []byte
	missing, err := database.Found(q.QueryRow(ctx, reach(`SELECT manifest FROM roost.owners WHERE store = $1 AND NOT owner = ANY($2)`)+`
SELECT r.hash FROM reach r WHERE NOT EXISTS (SELECT FROM roost.kept k WHERE k.store = $1 AND k.hash = r.hash) LIMIT 1`, id, without), &hash)
	if err == nil && missing {
		err = fmt.Errorf("a content that is still needed is missing, so nothing may be removed: %w: content %x", content.ErrDamaged, hash)
	}
	return err
}

// remove removes unneeded contents from the store. The caller's lock ensures that none becomes needed meanwhile.
func (s *Store) remove(ctx context.Context, tx *database.Tx, id int32, o content.CollectOptions) (done content.Collected, err error) {
	if _, err := tx.Exec(ctx, lockAlone, lockClass, id); err != nil {
		return done, err
	}
	if err := lease.End(ctx, tx); err != nil {
		return done, err
	}
	if err := s.whole(ctx, tx, id, []string{}); err != nil {
		return done, err
	}
	keep, without, err := roots(o)
	if err != nil {
		return done, err
	}
	var bytes int64
	err = tx.QueryRow(ctx, reach(needed)+`, gone AS (
	DELETE FROM roost.kept k WHERE k.store = $1 AND NOT EXISTS (SELECT FROM reach r WHERE r.hash = k.hash) RETURNING k.hash
)
SELECT (SELECT count(*) FROM roost.kept WHERE store = $1) - count(*), count(*), COALESCE(sum(c.stored), 0)::bigint
FROM gone g JOIN roost.contents c ON c.hash = g.hash`, id, keep, without).Scan(&done.Kept, &done.Removed, &bytes)
	if err == nil {
		err = tx.QueryRow(ctx, `UPDATE roost.content_stores SET bytes = bytes - $2 WHERE id = $1 RETURNING bytes`, id, bytes).Scan(&done.After)
	}
	done.Before = done.After + bytes
	return done, err
}
