package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/api"
)

// Rows reads all sources, and of each row the members that the extent includes. It reads only rows that this build of
// the program derived: another build may derive different ones. It leaves out damaged rows.
func (db *DB) Rows(ctx context.Context, build uint64, extent Extent) ([]SourceRows, error) {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer c.Close() //nolint:errcheck // it fails when rollback discarded the connection
	// One transaction: the rows must be those of the sources.
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer rollback(ctx, c)
	var out []SourceRows
	at := map[int64]int{}
	err = scan(ctx, c, "SELECT id, body, checksum FROM source WHERE build = ?", func(v values) {
		if s, ok := UnpackSource(v.blob(1), v.int(2)); ok {
			at[v.int(0)] = len(out)
			out = append(out, SourceRows{Source: s})
		}
	}, int64(build))
	if err != nil || len(out) == 0 {
		return out, err
	}
	query := "SELECT source, row.body, row.checksum" + [...]string{
		Bare:      " FROM row",
		Titles:    ", title FROM row JOIN summary ON row = id",
		Summaries: ", title, summary.body, summary.checksum FROM row JOIN summary ON row = id",
	}[extent]
	err = scan(ctx, c, query, func(v values) {
		p := Packed{Body: v.blob(1), Sum: v.int(2)}
		if extent >= Titles {
			p.Title = v.blob(3)
		}
		if extent == Summaries {
			p.Summary, p.PageSum = v.blob(4), v.int(5)
		}
		if i, ok := at[v.int(0)]; ok {
			if r, ok := p.Row(extent); ok {
				out[i].Rows = append(out[i].Rows, r)
			}
		}
	})
	return out, err
}

// Summaries reads the summaries of some rows of a source into them, as this build derived them. A row that has
// changed since, or is damaged, keeps a nil summary.
func (db *DB) Summaries(ctx context.Context, build uint64, source string, rows []*Row) error {
	stmt, err := db.sql.PrepareContext(ctx, `SELECT title, summary.body, summary.checksum FROM row JOIN summary ON row = id
		WHERE source = (SELECT id FROM source WHERE name = ? AND build = ?) AND name = ? AND digest = ?`)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	defer stmt.Close() //nolint:errcheck // nothing was written
	for _, r := range rows {
		var p Packed
		err := stmt.QueryRowContext(ctx, source, int64(build), r.ID, int64(r.Digest)).Scan(&p.Title, &p.Summary, &p.PageSum)
		switch {
		case err == nil:
			p.Page(r)
		case !errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("read the catalogue: %w", err)
		}
	}
	return nil
}

// Keep writes everything that a list found out, or nothing, and removes sources that no list has kept since forget, a
// time in Unix milliseconds. It waits for up to wait until another writer has ended.
func (db *DB) Keep(ctx context.Context, build uint64, changes []Change, forget int64, wait time.Duration) error {
	err := db.write(ctx, wait, func(c *sql.Conn) error {
		for i := range changes {
			if err := keep(ctx, c, build, &changes[i]); err != nil {
				return err
			}
		}
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source IN (SELECT id FROM source WHERE seen < ?)", forget); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, "DELETE FROM source WHERE seen < ?", forget)
		return err
	})
	return api.Failed(err, "keep rows in the catalogue")
}

// ForgetRows removes all sources and rows.
func (db *DB) ForgetRows(ctx context.Context) error {
	err := db.write(ctx, patience, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "DELETE FROM row; DELETE FROM source")
		return err
	})
	return api.Failed(err, "forget the rows of the catalogue")
}

func keep(ctx context.Context, c *sql.Conn, build uint64, ch *Change) error {
	body, sum := ch.Source.Pack()
	var id int64
	err := c.QueryRowContext(ctx, `INSERT INTO source(name, build, seen, body, checksum) VALUES(?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE
		SET build = excluded.build, seen = excluded.seen, body = excluded.body, checksum = excluded.checksum
		WHERE source.build = excluded.build OR ? RETURNING id`, ch.Source.Name, int64(build), ch.Source.Seen, body, sum, ch.Reset).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // another build has replaced the rows that this list read
	}
	if err != nil {
		return err
	}
	if ch.Reset {
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ?", id); err != nil {
			return err
		}
	}
	for _, name := range ch.Gone {
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ? AND name = ?", id, name); err != nil {
			return err
		}
	}
	for _, r := range ch.Update {
		p := r.Pack()
		_, err := c.ExecContext(ctx, "UPDATE row SET body = ?, checksum = ? WHERE source = ? AND name = ? AND digest = ?",
			p.Body, p.Sum, id, r.ID, int64(r.Digest))
		if err != nil {
			return err
		}
	}
	if len(ch.Put) == 0 {
		return nil
	}
	insert, err := c.PrepareContext(ctx, "INSERT INTO row(source, name, digest, body, checksum) VALUES(?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // the transaction's end reports what failed
	summary, err := c.PrepareContext(ctx, "INSERT INTO summary VALUES(?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer summary.Close() //nolint:errcheck // as above
	for _, r := range ch.Put {
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ? AND name = ?", id, r.ID); err != nil {
			return err
		}
		p := r.Pack()
		done, err := insert.ExecContext(ctx, id, r.ID, int64(r.Digest), p.Body, p.Sum)
		if err != nil {
			return err
		}
		row, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := summary.ExecContext(ctx, row, p.Title, p.Summary, p.PageSum); err != nil {
			return err
		}
	}
	return nil
}
