package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		w := indexWriter{c: c}
		for i, e := range list {
			if last[e.Key] != i {
				continue
			}
			if err := drop(ctx, c, e.Key); err != nil {
				return err
			}
			task, err := insert(ctx, c, e)
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

func insert(ctx context.Context, c *sql.Conn, e Entry) (task int64, err error) {
	done, err := c.ExecContext(ctx, "INSERT INTO task(key, stamp) VALUES(?, ?)", e.Key, e.Stamp)
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
	done, err := w.c.ExecContext(ctx, "INSERT INTO part(task, first) VALUES(?, ?)", task, p.first)
	if err != nil {
		return err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := w.c.ExecContext(ctx, "INSERT INTO body(part, text) VALUES(?, ?)", id, p.body); err != nil {
		return err
	}
	if w.words == nil {
		w.words = map[string]struct{}{}
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
