package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc64"
	"math/bits"
	"time"

	"github.com/roost-dev/roost/task/codec"
)

// Source is a storage whose tasks have rows.
type Source struct {
	Name, Tool string
	ByPath     string // the tool that the path alone implies
	Path       string // as the user named it
	Tasks      string // the folder of task folders
	Problem    string // what is wrong with the indexes beside the tasks
	Indexes    uint64 // a digest of those indexes when Problem was found; 0 = unknown
	Seen       int64  // Unix milliseconds: when a list last kept something of it
	Compared   int64  // Unix milliseconds: when a list last compared every file of it; 0 = unknown
}

// Row is a task as lists filter and sort it, and what it was derived from.
type Row struct {
	ID                                     string
	Tool, Status, Workspace, Model, Parent string
	Tags                                   []string
	TS, Cost, Tokens, Size                 int64 // Cost in micro-dollars
	Empty, Damaged, Pinned, Priced         bool

	Known      bool   `codec:"-"` // false: only the name is known
	Logged     bool   // it has a journal
	Unfinished bool   // its files do not show whether it runs now
	Digest     uint64 // of how its files look
	Folders    uint64 // of how its folders and journal look; 0 = those show too little
	Written    int64  // Unix seconds: when the newest of its files was written
	Files      string // names of those files, joined by \x00
	Item       uint64 // a digest of its entry in an index; 0 = the index does not count
	Indexes    uint64 // a digest of the indexes when Item was last compared; 0 = compare it

	// Content is a digest of both histories' bytes, all zero until a list needs it.
	// Sizes is a digest of their lengths.
	Content [16]byte
	Sizes   uint64

	Title   string
	Summary []byte `codec:"-"` // the encoded row, read on request; nil = not read
}

// encode spells a row or a source, with a checksum: SQLite has none of its own, and a list must not show a damaged page.
func encode(v any) (body []byte, checksum int64) {
	w := codec.NewWriter(nil)
	w.Value(v)
	return w.Out, int64(MixText(0, string(w.Out)))
}

// decode reads what encode wrote, and reports whether it has the checksum.
func decode(to any, body []byte, checksum int64) bool {
	if int64(MixText(0, string(body))) != checksum {
		return false
	}
	u := codec.Reader{In: body}
	u.Value(to)
	return !u.Bad
}

func (r *Row) pageChecksum() int64 {
	return int64(MixText(MixText(r.Digest, r.ID), string(r.Summary)))
}

// SourceRows is a source with rows of it.
type SourceRows struct {
	Source
	Rows []Row
}

// Reading is a catalogue whose rows are being read. A nil one has none.
type Reading struct {
	done    chan struct{}
	db      *DB
	sources []SourceRows
}

// ReadRows opens the catalogue of a cache folder and begins to read its rows, see DB.Rows; nil without a folder. A
// catalogue that cannot be used costs time and is no error; a damaged one is set aside and replaced.
func ReadRows(ctx context.Context, folder string, build uint64, summaries bool) *Reading {
	if folder == "" {
		return nil
	}
	r := &Reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for range 2 { // a damaged catalogue is set aside, and a new one opened
			db, err := Open(ctx, folder)
			if err != nil {
				return
			}
			sources, err := db.Rows(ctx, build, summaries)
			switch {
			case err == nil:
				r.db, r.sources = db, sources
				return
			case !Damaged(err):
				_ = db.Close() // it was only read
				return
			case db.SetAside() != nil:
				return
			}
		}
	}()
	return r
}

// DB is the catalogue; nil when it cannot be used.
func (r *Reading) DB() *DB {
	if r == nil {
		return nil
	}
	<-r.done
	return r.db
}

// Sources are the rows that were read.
func (r *Reading) Sources() []SourceRows {
	if r.DB() == nil {
		return nil
	}
	return r.sources
}

// Close closes the catalogue. What was kept is kept.
func (r *Reading) Close() {
	if db := r.DB(); db != nil {
		_ = db.Close()
	}
}

// Rows reads all sources and rows that this build of the program derived, with summaries or without. Another build may
// derive other things. A damaged row is left out.
func (db *DB) Rows(ctx context.Context, build uint64, summaries bool) ([]SourceRows, error) {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer c.Close() //nolint:errcheck // it is given back; that fails when it was thrown away
	// One transaction: the rows must be those of the sources.
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer rollback(ctx, c)
	var out []SourceRows
	at := map[int64]int{}
	err = scan(ctx, c, "SELECT id, body, checksum FROM source WHERE build = ?", func(v values) {
		var s SourceRows
		if decode(&s.Source, v.blob(1), v.int(2)) {
			at[v.int(0)] = len(out)
			out = append(out, s)
		}
	}, int64(build))
	if err != nil || len(out) == 0 {
		return out, err
	}
	query := "SELECT source, row.body, row.checksum FROM row"
	if summaries {
		query = "SELECT source, row.body, row.checksum, summary.body, summary.checksum FROM row JOIN summary ON row = id"
	}
	err = scan(ctx, c, query, func(v values) {
		r := Row{Known: true}
		i, ok := at[v.int(0)]
		if !ok || !decode(&r, v.blob(1), v.int(2)) {
			return
		}
		if summaries {
			if r.Summary = v.blob(3); r.pageChecksum() != v.int(4) {
				return
			}
		}
		out[i].Rows = append(out[i].Rows, r)
	})
	return out, err
}

// Summaries reads the summaries of some rows of a source into them. A row that has
// changed since, or is damaged, keeps a nil summary.
func (db *DB) Summaries(ctx context.Context, source string, rows []*Row) error {
	stmt, err := db.sql.PrepareContext(ctx, `SELECT summary.body, summary.checksum FROM row JOIN summary ON row = id
		WHERE source = (SELECT id FROM source WHERE name = ?) AND name = ? AND digest = ?`)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	defer stmt.Close() //nolint:errcheck // nothing was written
	for _, r := range rows {
		got, sum := Row{ID: r.ID, Digest: r.Digest}, int64(0)
		err := stmt.QueryRowContext(ctx, source, r.ID, int64(r.Digest)).Scan(&got.Summary, &sum)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return fmt.Errorf("read the catalogue: %w", err)
		case got.pageChecksum() == sum:
			r.Summary = got.Summary
		}
	}
	return nil
}

// Change is what a list found out about a source.
type Change struct {
	Source Source
	Put    []*Row   // new or changed, with summary
	Update []*Row   // whose Content or Indexes was found out
	Gone   []string // names of tasks that are gone
	Reset  bool     // every row that is not in Put is forgotten
}

// Keep writes what a list found out, all or nothing, and forgets sources that no list
// has kept since a time in Unix milliseconds. It waits up to wait for another writer.
func (db *DB) Keep(ctx context.Context, build uint64, changes []Change, forget int64, wait time.Duration) error {
	err := db.writeWithin(ctx, wait, func(c *sql.Conn) error {
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
	if err != nil {
		return fmt.Errorf("keep rows in the catalogue: %w", err)
	}
	return nil
}

// ForgetRows removes all sources and rows.
func (db *DB) ForgetRows(ctx context.Context) error {
	err := db.write(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "DELETE FROM row; DELETE FROM source")
		return err
	})
	if err != nil {
		return fmt.Errorf("forget the rows of the catalogue: %w", err)
	}
	return nil
}

func keep(ctx context.Context, c *sql.Conn, build uint64, ch *Change) error {
	body, sum := encode(ch.Source)
	var id int64
	err := c.QueryRowContext(ctx, `INSERT INTO source(name, build, seen, body, checksum) VALUES(?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE
		SET build = excluded.build, seen = excluded.seen, body = excluded.body, checksum = excluded.checksum RETURNING id`,
		ch.Source.Name, int64(build), ch.Source.Seen, body, sum).Scan(&id)
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
		body, sum := encode(*r)
		_, err := c.ExecContext(ctx, "UPDATE row SET body = ?, checksum = ? WHERE source = ? AND name = ? AND digest = ?",
			body, sum, id, r.ID, int64(r.Digest))
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
	summary, err := c.PrepareContext(ctx, "INSERT INTO summary VALUES(?, ?, ?)")
	if err != nil {
		return err
	}
	defer summary.Close() //nolint:errcheck // as above
	for _, r := range ch.Put {
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ? AND name = ?", id, r.ID); err != nil {
			return err
		}
		body, sum := encode(*r)
		done, err := insert.ExecContext(ctx, id, r.ID, int64(r.Digest), body, sum)
		if err != nil {
			return err
		}
		row, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := summary.ExecContext(ctx, row, r.Summary, r.pageChecksum()); err != nil {
			return err
		}
	}
	return nil
}

// Mix adds a number to a digest. It is one step of a permutation, so two that differ
// in one number always differ; it is no defence against an attacker who wants two to be
// equal.
func Mix(digest, n uint64) uint64 {
	return bits.RotateLeft64(digest^n*0x9e3779b97f4a7c15, 29) * 0xbf58476d1ce4e5b9
}

// MixText adds a text.
func MixText(digest uint64, s string) uint64 {
	return crc64.Update(Mix(digest, uint64(len(s))), ecma, []byte(s))
}

var ecma = crc64.MakeTable(crc64.ECMA)
