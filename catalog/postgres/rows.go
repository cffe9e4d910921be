package postgres

import (
	"context"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/database"
)

// Rows is catalog.DB.Rows.
func (db *DB) Rows(ctx context.Context, build uint64, extent catalog.Extent) (out []catalog.SourceRows, err error) {
	tx, end, err := db.db.Snapshot(ctx)
	if err == nil {
		defer end()
		out, err = rowsOf(ctx, tx, build, extent)
	}
	return out, api.Failed(err, "read the catalogue")
}

func rowsOf(ctx context.Context, tx *database.Tx, build uint64, extent catalog.Extent) (out []catalog.SourceRows, err error) {
	at := map[int64]int{}
	found := tx.Query(ctx, `SELECT id, checksum, body FROM roost.catalog_sources WHERE build = $1 ORDER BY id`, int64(build))
	var id, sum int64
	var body []byte
	err = found.Each([]any{&id, &sum, &body}, func() error {
		if s, ok := catalog.UnpackSource(body, sum); ok {
			at[id] = len(out)
			out = append(out, catalog.SourceRows{Source: s})
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		return out, err
	}
	var p catalog.Packed
	into := []any{&id, &p.Sum, &p.Body, &p.Title, &p.PageSum, &p.Summary}[:3+[...]int{catalog.Bare: 0, catalog.Titles: 1, catalog.Summaries: 3}[extent]]
	found = tx.Query(ctx, "SELECT source, checksum, body"+[...]string{
		catalog.Bare:      "",
		catalog.Titles:    ", title",
		catalog.Summaries: ", title, page_checksum, summary",
	}[extent]+" FROM roost.catalog_rows")
	err = found.Each(into, func() error {
		if i, ok := at[id]; ok {
			if r, ok := p.Row(extent); ok {
				out[i].Rows = append(out[i].Rows, r)
			}
		}
		return nil
	})
	return out, err
}

// Summaries is catalog.DB.Summaries.
func (db *DB) Summaries(ctx context.Context, build uint64, source string, rows []*catalog.Row) error {
	names, digests := make([][]byte, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		names[i], digests[i] = []byte(r.ID), int64(r.Digest)
	}
	found := db.db.Query(ctx, `
SELECT n, title, page_checksum, summary FROM unnest($2::bytea[], $3::bigint[]) WITH ORDINALITY AS wanted (name, digest, n)
JOIN roost.catalog_rows USING (name, digest) WHERE source IN (SELECT id FROM roost.catalog_sources WHERE name = $1 AND build = $4)`, []byte(source), names, digests, int64(build))
	var n int64
	var p catalog.Packed
	err := found.Each([]any{&n, &p.Title, &p.PageSum, &p.Summary}, func() error {
		p.Page(rows[n-1])
		return nil
	})
	return api.Failed(err, "read the catalogue")
}

// Keep is catalog.DB.Keep.
func (db *DB) Keep(ctx context.Context, build uint64, changes []catalog.Change, forget int64, wait time.Duration) error {
	err := db.write(ctx, rowsTurn, wait, func(tx *database.Tx) error {
		for i := range changes {
			if err := keep(ctx, tx, build, &changes[i]); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `
WITH forgotten AS (DELETE FROM roost.catalog_sources WHERE seen < $1 RETURNING id)
DELETE FROM roost.catalog_rows WHERE source IN (SELECT id FROM forgotten)`, forget)
		return err
	})
	return api.Failed(err, "keep rows in the catalogue")
}

func keep(ctx context.Context, tx *database.Tx, build uint64, ch *catalog.Change) error {
	body, sum := ch.Source.Pack()
	var id int64
	err := tx.QueryRow(ctx, `
INSERT INTO roost.catalog_sources (name, build, seen, body, checksum) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name, build) DO UPDATE SET seen = excluded.seen, body = excluded.body, checksum = excluded.checksum RETURNING id`,
		[]byte(ch.Source.Name), int64(build), ch.Source.Seen, body, sum).Scan(&id)
	if err != nil {
		return err
	}
	if ch.Reset {
		if _, err := tx.Exec(ctx, `DELETE FROM roost.catalog_rows WHERE source = $1`, id); err != nil {
			return err
		}
	}
	gone := api.Each(ch.Gone, func(name string) []byte { return []byte(name) })
	gone = append(gone, api.Each(ch.Put, func(r *catalog.Row) []byte { return []byte(r.ID) })...)
	if len(gone) > 0 && !ch.Reset {
		if _, err := tx.Exec(ctx, `DELETE FROM roost.catalog_rows WHERE source = $1 AND name = ANY ($2)`, id, gone); err != nil {
			return err
		}
	}
	if err := update(ctx, tx, id, ch.Update); err != nil || len(ch.Put) == 0 {
		return err
	}
	return insert(ctx, tx, id, ch.Put)
}

func insert(ctx context.Context, tx *database.Tx, source int64, rows []*catalog.Row) error {
	var names, bodies, titles, summaries [][]byte
	var digests, sums, pageSums []int64
	for _, r := range rows {
		p := r.Pack()
		names, digests = append(names, []byte(r.ID)), append(digests, int64(r.Digest))
		bodies, sums = append(bodies, p.Body), append(sums, p.Sum)
		titles, summaries, pageSums = append(titles, p.Title), append(summaries, append([]byte{}, p.Summary...)), append(pageSums, p.PageSum)
	}
	_, err := tx.Exec(ctx, `
INSERT INTO roost.catalog_rows (source, name, digest, body, checksum, title, summary, page_checksum)
SELECT $1, n.* FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bigint[]) AS n`,
		source, names, digests, bodies, sums, titles, summaries, pageSums)
	return err
}

// update stores what a list found out about rows, unless the rows have changed since.
func update(ctx context.Context, tx *database.Tx, source int64, rows []*catalog.Row) error {
	if len(rows) == 0 {
		return nil
	}
	var names, bodies [][]byte
	var digests, sums []int64
	for _, r := range rows {
		p := r.Pack()
		names, digests = append(names, []byte(r.ID)), append(digests, int64(r.Digest))
		bodies, sums = append(bodies, p.Body), append(sums, p.Sum)
	}
	_, err := tx.Exec(ctx, `
UPDATE roost.catalog_rows AS r SET body = n.body, checksum = n.checksum
FROM unnest($2::bytea[], $3::bigint[], $4::bytea[], $5::bigint[]) AS n (name, digest, body, checksum)
WHERE r.source = $1 AND r.name = n.name AND r.digest = n.digest`, source, names, digests, bodies, sums)
	return err
}

// ForgetRows is catalog.DB.ForgetRows.
func (db *DB) ForgetRows(ctx context.Context) error {
	err := db.write(ctx, rowsTurn, patience, func(tx *database.Tx) error { return remove(ctx, tx, "catalog_rows", "catalog_sources") })
	return api.Failed(err, "forget the rows of the catalogue")
}
