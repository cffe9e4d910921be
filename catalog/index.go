package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc64"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/task/codec"
)

// Entry is a task as it is put into the catalogue.
type Entry struct {
	Key   string
	Stamp string // of what it was derived from

	parts []part
	text  int // of parts
}

// Entry is the task whose messages were added. The builder is empty afterwards.
func (b *Builder) Entry(key, stamp string) Entry {
	e := Entry{Key: key, Stamp: stamp, parts: b.take()}
	for _, p := range e.parts {
		e.text += p.text
	}
	return e
}

// Text is how many bytes of text the entry holds in memory.
func (e Entry) Text() int { return e.text }

// Put replaces tasks, all or none. Many at once cost less than one by one. Of entries
// with one key the last stays.
func (db *DB) Put(ctx context.Context, list []Entry) error {
	last := map[string]int{}
	for i, e := range list {
		last[e.Key] = i
	}
	err := db.write(ctx, func(c *sql.Conn) error {
		w := indexWriter{c: c, words: map[string]struct{}{}}
		for i, e := range list {
			if last[e.Key] != i {
				continue
			}
			if err := drop(ctx, c, e.Key); err != nil {
				return err
			}
			task, err := insert(ctx, c, "INSERT INTO task(key, stamp) VALUES(?, ?)", e.Key, e.Stamp)
			if err != nil {
				return err
			}
			for _, p := range e.parts {
				if err := w.part(ctx, task, p); err != nil {
					return err
				}
			}
		}
		return w.end(ctx)
	})
	if err != nil {
		return fmt.Errorf("keep %d tasks in the catalogue: %w", len(list), err)
	}
	return nil
}

// Drop removes tasks that are no more.
func (db *DB) Drop(ctx context.Context, keys []string) error {
	err := db.write(ctx, func(c *sql.Conn) error {
		for _, key := range keys {
			if err := drop(ctx, c, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove %d tasks from the catalogue: %w", len(keys), err)
	}
	return nil
}

func drop(ctx context.Context, c *sql.Conn, key string) error {
	for _, text := range []string{
		"DELETE FROM part WHERE task IN (SELECT id FROM task WHERE key = ?)",
		"DELETE FROM task WHERE key = ?",
	} {
		if _, err := c.ExecContext(ctx, text, key); err != nil {
			return err
		}
	}
	return nil
}

// insert adds a row, and returns its id.
func insert(ctx context.Context, c *sql.Conn, query string, values ...any) (id int64, err error) {
	done, err := c.ExecContext(ctx, query, values...)
	if err != nil {
		return 0, err
	}
	return done.LastInsertId()
}

// mostLists is how many lists of words the vocabulary has before they become one: every
// search reads all of them.
const mostLists = 16

// indexWriter writes parts and what the index has of them.
type indexWriter struct {
	c     *sql.Conn
	words map[string]struct{} // of the parts
}

func (w *indexWriter) part(ctx context.Context, task int64, p part) error {
	id, err := insert(ctx, w.c, "INSERT INTO part(task, first) VALUES(?, ?)", task, p.first)
	if err != nil {
		return err
	}
	if _, err := w.c.ExecContext(ctx, "INSERT INTO body(part, text) VALUES(?, ?)", id, p.body); err != nil {
		return err
	}
	for rest := p.doc; rest[0] != '\n'; { // an empty line ends the words
		end := bytes.IndexByte(rest, '\n')
		if _, ok := w.words[string(rest[:end])]; !ok {
			w.words[string(rest[:end])] = struct{}{}
		}
		rest = rest[end+1:]
	}
	_, err = w.c.ExecContext(ctx, "INSERT INTO feature(rowid, words) VALUES(?, ?)", id, string(p.doc))
	return err
}

// jointToken is a joint as a word of the index. No word of a text begins with this byte,
// unless the text is not UTF-8; the part is then read for nothing.
func jointToken(j uint32) string {
	const digits = "abcdefghijklmnopqrstuvwxyz234567"
	return string([]byte{0xff, digits[j&31], digits[j>>5&31], digits[j>>10&31], digits[j>>15&31]})
}

// end adds the words of the parts to the vocabulary. Words of removed tasks stay in
// it: each costs a search a lookup.
func (w *indexWriter) end(ctx context.Context) error {
	lists, err := vocabulary(ctx, w.c)
	if err != nil {
		return err
	}
	for _, list := range lists {
		for rest := list[1:]; len(rest) > 0; {
			end := bytes.IndexByte(rest, '\n')
			delete(w.words, string(rest[:end]))
			rest = rest[end+1:]
		}
	}
	if len(w.words) == 0 {
		return nil
	}
	list := []byte("\n" + strings.Join(slices.Sorted(maps.Keys(w.words)), "\n") + "\n")
	if len(lists) >= mostLists {
		for _, old := range lists {
			list = append(list, old[1:]...)
		}
		if _, err := w.c.ExecContext(ctx, "DELETE FROM vocabulary"); err != nil {
			return err
		}
	}
	_, err = w.c.ExecContext(ctx, "INSERT INTO vocabulary(words) VALUES(?)", coders().enc.EncodeAll(list, nil))
	return err
}

// vocabulary is every list of words. A list has a line break before its first word and
// behind each word.
func vocabulary(ctx context.Context, c *sql.Conn) (lists [][]byte, err error) {
	var bad error
	err = scan(ctx, c, "SELECT words FROM vocabulary", func(v values) {
		list, err := coders().dec.DecodeAll(v.blob(0), nil)
		if err != nil || len(list) < 2 || list[0] != '\n' || list[len(list)-1] != '\n' {
			bad = fmt.Errorf("%w: its vocabulary cannot be read", ErrDamaged)
		}
		lists = append(lists, list)
	})
	return lists, errors.Join(err, bad)
}

// manyWords bounds the words that a search looks up for one stretch of characters. A
// stretch that more words have is in most parts, and the lookups take longer than to
// read parts.
const manyWords = 200

// wordsWith are the words that have a stretch of characters; ok is false when there
// are too many. A line break in the stretch is the edge of a word.
func wordsWith(lists [][]byte, stretch string) (out []string, ok bool) {
	want := []byte(stretch)
	for _, list := range lists {
		for at := 0; ; {
			i := bytes.Index(list[at:], want)
			if i < 0 {
				break
			}
			place := at + i
			if want[0] == '\n' {
				place++ // the word begins behind it
			}
			if len(out) == manyWords {
				return nil, false
			}
			from := bytes.LastIndexByte(list[:place], '\n') + 1
			end := place + bytes.IndexByte(list[place:], '\n')
			out = append(out, string(list[from:end]))
			at = end // the break that the next word begins at
		}
	}
	return out, true
}

// expression is what to ask the full-text table for; "" when that narrows nothing. none
// reports that no part can have what is wanted.
func (w wanted) expression(lists [][]byte) (text string, none bool) {
	var all []string
	for _, stretch := range w.words {
		words, ok := wordsWith(lists, stretch)
		switch {
		case !ok:
		case len(words) == 0:
			return "", true
		default:
			all = append(all, `("`+strings.Join(words, `" OR "`)+`")`)
		}
	}
	for _, j := range w.joints {
		all = append(all, `"`+jointToken(j)+`"`)
	}
	return strings.Join(all, " AND "), false
}

const (
	partText = 32 << 10 // a part is closed when it holds so much text
	mostText = 64 << 20 // of one task; a larger one is not kept, and always read. It bounds memory
)

// part is some messages and what the index keeps of them.
type part struct {
	first int // place of its first message in the task's order
	text  int
	body  []byte // compressed
	doc   []byte // its words, an empty line and its joints, each with a line break behind it
}

// Builder makes the parts of one task's text. To be used by one goroutine.
//
// A text that several messages of a part have, such as what a command printed to both histories, is kept and indexed once.
type Builder struct {
	found features // of the part that is being filled
	draft *draft   // that part; nil when there is none
	parts []part
	size  int // of the text of parts
}

// Add appends a message. One without text is left out. Places rise.
func (b *Builder) Add(m Message) {
	if len(m.Pieces) == 0 || b.TooLarge() {
		return
	}
	if b.draft == nil {
		b.draft = &draft{first: m.Place, known: map[string]bool{}, out: codec.NewWriter(nil)}
	}
	d := b.draft
	for _, p := range m.Pieces {
		if !d.known[p.Text] {
			d.known[p.Text] = true
			d.text += len(p.Text)
			b.found.text(strings.ToLower(p.Text))
		}
	}
	d.message(m)
	if d.text >= partText {
		b.full()
	}
}

// TooLarge reports whether the task has more text than the catalogue keeps of one.
func (b *Builder) TooLarge() bool { return b.size > mostText }

// full ends the filling of a part.
func (b *Builder) full() {
	d := b.draft
	if d == nil {
		return
	}
	doc := append(bytes.Clone(b.found.words), '\n')
	for _, j := range b.found.joints {
		doc = append(append(doc, jointToken(j)...), '\n')
	}
	b.parts = append(b.parts, part{d.first, d.text, coders().enc.EncodeAll(d.out.Out, nil), doc})
	b.size += d.text
	b.found.reset()
	b.draft = nil
}

// take returns the parts and empties the builder.
func (b *Builder) take() []part {
	b.full()
	parts := b.parts
	*b = Builder{}
	return parts
}

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

	TitleSum uint64 // a digest of the title
	Title    string `codec:"-"` // read on request: a long title costs a list more than all the rest
	Summary  []byte `codec:"-"` // the encoded row, read on request; nil = not read
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

// Extent is what is read of rows, beside what lists sort by.
type Extent int

// Each extent has what the ones before it have.
const (
	Bare Extent = iota
	Titles
	Summaries
)

// Rows reads all sources, and of each row what the extent names. It reads only what this build of the program derived:
// another build may derive other things. It leaves out damaged rows.
func (db *DB) Rows(ctx context.Context, build uint64, extent Extent) ([]SourceRows, error) {
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
	query := "SELECT source, row.body, row.checksum" + [...]string{
		Bare:      " FROM row",
		Titles:    ", title FROM row JOIN summary ON row = id",
		Summaries: ", title, summary.body, summary.checksum FROM row JOIN summary ON row = id",
	}[extent]
	err = scan(ctx, c, query, func(v values) {
		r := Row{Known: true}
		i, ok := at[v.int(0)]
		if !ok || !decode(&r, v.blob(1), v.int(2)) {
			return
		}
		if extent >= Titles {
			if r.Title = string(v.blob(3)); MixText(0, r.Title) != r.TitleSum {
				return
			}
		}
		if extent == Summaries {
			if r.Summary = v.blob(4); r.pageChecksum() != v.int(5) {
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
	stmt, err := db.sql.PrepareContext(ctx, `SELECT title, summary.body, summary.checksum FROM row JOIN summary ON row = id
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
		case got.pageChecksum() == sum && MixText(0, got.Title) == r.TitleSum:
			r.Title, r.Summary = got.Title, got.Summary
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
		r.TitleSum = MixText(0, r.Title)
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
	summary, err := c.PrepareContext(ctx, "INSERT INTO summary VALUES(?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer summary.Close() //nolint:errcheck // as above
	for _, r := range ch.Put {
		if _, err := c.ExecContext(ctx, "DELETE FROM row WHERE source = ? AND name = ?", id, r.ID); err != nil {
			return err
		}
		r.TitleSum = MixText(0, r.Title)
		body, sum := encode(*r)
		done, err := insert.ExecContext(ctx, id, r.ID, int64(r.Digest), body, sum)
		if err != nil {
			return err
		}
		row, err := done.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := summary.ExecContext(ctx, row, []byte(r.Title), r.Summary, r.pageChecksum()); err != nil {
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
