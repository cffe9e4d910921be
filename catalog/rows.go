package catalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// A list reads every row, and the title and summary of one page: those have a table of
// their own, so that a scan does not read their pages.
const rowSchema = `
CREATE TABLE source(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, build INTEGER NOT NULL, tool TEXT NOT NULL,
	by_path TEXT NOT NULL, path TEXT NOT NULL, tasks TEXT NOT NULL, problem TEXT NOT NULL, indexes INTEGER NOT NULL,
	seen INTEGER NOT NULL, compared INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE row(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, name TEXT NOT NULL,
	digest INTEGER NOT NULL, folders INTEGER NOT NULL, written INTEGER NOT NULL,
	item INTEGER NOT NULL, indexes INTEGER NOT NULL, files TEXT NOT NULL, flags INTEGER NOT NULL,
	ts INTEGER NOT NULL, cost INTEGER NOT NULL, tokens INTEGER NOT NULL, size INTEGER NOT NULL,
	tool TEXT NOT NULL, status TEXT NOT NULL, workspace TEXT NOT NULL,
	model TEXT NOT NULL, parent TEXT NOT NULL, tags TEXT NOT NULL,
	sizes INTEGER NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL, UNIQUE(source, name));
CREATE TABLE summary(row INTEGER PRIMARY KEY, title TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TRIGGER row_gone AFTER DELETE ON row BEGIN DELETE FROM summary WHERE row = old.id; END;`

const dropRows = "DROP TABLE IF EXISTS source; DROP TABLE IF EXISTS row; DROP TABLE IF EXISTS summary;"

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

	Known      bool   // false: only the name is known
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

	Title   string // read on request
	Summary []byte // the encoded row, read on request; nil = not read
}

// flagged are the bools of a row, in the order of their bits.
func (r *Row) flagged() [6]*bool {
	return [...]*bool{&r.Empty, &r.Damaged, &r.Pinned, &r.Priced, &r.Logged, &r.Unfinished}
}

func (r *Row) flags() (out int64) {
	for i, on := range r.flagged() {
		if *on {
			out |= 1 << i
		}
	}
	return out
}

// checksum covers what a scan reads. SQLite has no checksums of its own, and a list
// must not show a damaged page.
func (r *Row) checksum(tags string) int64 {
	digest := uint64(r.flags())
	for _, s := range [...]string{r.ID, r.Files, r.Tool, r.Status, r.Workspace, r.Model, r.Parent, tags, string(r.Content[:])} {
		digest = MixText(digest, s)
	}
	for _, n := range [...]uint64{
		r.Digest, r.Folders, uint64(r.Written), r.Item, r.Indexes, r.Sizes,
		uint64(r.TS), uint64(r.Cost), uint64(r.Tokens), uint64(r.Size),
	} {
		digest = Mix(digest, n)
	}
	return int64(digest)
}

func (r *Row) pageChecksum() int64 {
	return int64(MixText(MixText(MixText(r.Digest, r.ID), r.Title), string(r.Summary)))
}

func (s *Source) checksum() int64 {
	digest := Mix(Mix(s.Indexes, uint64(s.Seen)), uint64(s.Compared))
	for _, text := range [...]string{s.Name, s.Tool, s.ByPath, s.Path, s.Tasks, s.Problem} {
		digest = MixText(digest, text)
	}
	return int64(digest)
}

// Read is how much of each row Rows reads.
type Read int

// What Rows reads: what lists filter and sort by; titles as well; summaries as well.
const (
	ReadColumns Read = iota
	ReadTitles
	ReadSummaries
)

// SourceRows is a source with rows of it.
type SourceRows struct {
	Source
	Rows []Row

	id int64
}

// Rows reads all sources and rows that this build of the program derived. Another
// build may derive other things. A damaged row is left out.
func (db *DB) Rows(ctx context.Context, build uint64, read Read) ([]SourceRows, error) {
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
	query := `SELECT id, name, tool, by_path, path, tasks, problem, indexes, seen, compared, checksum
		FROM source WHERE build = ?`
	err = scan(ctx, c, query, func(v values) {
		s := SourceRows{id: v.int(0), Source: Source{
			Name:     v.text(1),
			Tool:     v.text(2),
			ByPath:   v.text(3),
			Path:     v.text(4),
			Tasks:    v.text(5),
			Problem:  v.text(6),
			Indexes:  uint64(v.int(7)),
			Seen:     v.int(8),
			Compared: v.int(9),
		}}
		if s.checksum() == v.int(10) {
			at[s.id] = len(out)
			out = append(out, s)
		}
	}, int64(build))
	if err != nil || len(out) == 0 {
		return out, err
	}
	query = `SELECT source, name, digest, item, indexes, files, flags, ts, cost, tokens, size,
		tool, status, workspace, model, parent, tags, sizes, content, row.checksum, folders, written`
	switch read {
	case ReadColumns:
		query += " FROM row"
	case ReadTitles:
		query += ", title FROM row JOIN summary ON row = id"
	default:
		query += ", title, body, summary.checksum FROM row JOIN summary ON row = id"
	}
	err = scan(ctx, c, query, func(v values) {
		i, ok := at[v.int(0)]
		if !ok {
			return
		}
		r := Row{
			ID:        v.text(1),
			Known:     true,
			Digest:    uint64(v.int(2)),
			Item:      uint64(v.int(3)),
			Indexes:   uint64(v.int(4)),
			Files:     v.text(5),
			TS:        v.int(7),
			Cost:      v.int(8),
			Tokens:    v.int(9),
			Size:      v.int(10),
			Tool:      v.text(11),
			Status:    v.text(12),
			Workspace: v.text(13),
			Model:     v.text(14),
			Parent:    v.text(15),
			Sizes:     uint64(v.int(17)),
			Folders:   uint64(v.int(20)),
			Written:   v.int(21),
		}
		flags, tags := v.int(6), v.text(16)
		for i, on := range r.flagged() {
			*on = flags&(1<<i) != 0
		}
		if tags != "" {
			r.Tags = strings.Split(tags, "\x00")
		}
		copy(r.Content[:], v.blob(18))
		if r.checksum(tags) != v.int(19) {
			return
		}
		switch read {
		case ReadTitles:
			r.Title = v.text(22)
		case ReadSummaries:
			if r.Title, r.Summary = v.text(22), v.blob(23); r.pageChecksum() != v.int(24) {
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
	stmt, err := db.sql.PrepareContext(ctx, `SELECT title, body, summary.checksum FROM row JOIN summary ON row = id
		WHERE source = (SELECT id FROM source WHERE name = ?) AND name = ? AND digest = ?`)
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	defer stmt.Close() //nolint:errcheck // nothing was written
	for _, r := range rows {
		got, sum := Row{ID: r.ID, Digest: r.Digest}, int64(0)
		err := stmt.QueryRowContext(ctx, source, r.ID, int64(r.Digest)).Scan(&got.Title, &got.Summary, &sum)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return fmt.Errorf("read the catalogue: %w", err)
		case got.pageChecksum() == sum:
			r.Title, r.Summary = got.Title, got.Summary
		}
	}
	return nil
}

// Change is what a list found out about a source.
type Change struct {
	Source Source
	Put    []*Row   // new or changed, with title and summary
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
	s := &ch.Source
	var id int64
	err := c.QueryRowContext(ctx, `INSERT INTO source(name, build, tool, by_path, path, tasks, problem, indexes, seen, compared, checksum)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE SET build = excluded.build, tool = excluded.tool,
		by_path = excluded.by_path, path = excluded.path, tasks = excluded.tasks, problem = excluded.problem,
		indexes = excluded.indexes, seen = excluded.seen, compared = excluded.compared, checksum = excluded.checksum RETURNING id`,
		s.Name, int64(build), s.Tool, s.ByPath, s.Path, s.Tasks, s.Problem, int64(s.Indexes), s.Seen, s.Compared, s.checksum()).Scan(&id)
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
		_, err := c.ExecContext(ctx, "UPDATE row SET content = ?, indexes = ?, checksum = ? WHERE source = ? AND name = ? AND digest = ?",
			r.Content[:], int64(r.Indexes), r.checksum(strings.Join(r.Tags, "\x00")), id, r.ID, int64(r.Digest))
		if err != nil {
			return err
		}
	}
	if len(ch.Put) == 0 {
		return nil
	}
	insert, err := c.PrepareContext(ctx, "INSERT INTO row VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
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
		if !ch.Reset {
			if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ? AND name = ?", id, r.ID); err != nil {
				return err
			}
		}
		tags := strings.Join(r.Tags, "\x00")
		done, err := insert.ExecContext(ctx, id, r.ID, int64(r.Digest), int64(r.Folders), r.Written,
			int64(r.Item), int64(r.Indexes), r.Files, r.flags(), r.TS, r.Cost, r.Tokens, r.Size,
			r.Tool, r.Status, r.Workspace, r.Model, r.Parent, tags, int64(r.Sizes), r.Content[:], r.checksum(tags))
		if err != nil {
			return err
		}
		row, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := summary.ExecContext(ctx, row, r.Title, r.Summary, r.pageChecksum()); err != nil {
			return err
		}
	}
	return nil
}

// values are the columns of one row.
type values []driver.Value

func (v values) int(i int) int64 {
	n, _ := v[i].(int64)
	return n
}

func (v values) text(i int) string {
	s, _ := v[i].(string)
	return s
}

func (v values) blob(i int) []byte {
	b, _ := v[i].([]byte)
	return b
}

// scan calls f with each row of a query. It asks the driver itself: of ten thousand
// rows, database/sql would take half of a list's time to convert columns.
func scan(ctx context.Context, c *sql.Conn, query string, f func(values), args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	err := c.Raw(func(conn any) (err error) {
		queryer, ok := conn.(driver.QueryerContext)
		if !ok {
			return errors.ErrUnsupported
		}
		rows, err := queryer.QueryContext(ctx, query, named)
		if err != nil {
			return err
		}
		v := make(values, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(v); err == nil {
				f(v)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, rows.Close())
	})
	if err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	return nil
}
