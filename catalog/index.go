package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mostLists is how many lists of words the vocabulary has before they become one: every
// search reads all of them.
const mostLists = 16

// indexWriter writes parts and what the index has of them.
type indexWriter struct {
	c     *sql.Conn
	words map[string]struct{} // of the parts
	doc   []byte
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
	for rest := p.words; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if _, ok := w.words[string(rest[:end])]; !ok {
			w.words[string(rest[:end])] = struct{}{}
		}
		rest = rest[end+1:]
	}
	w.doc = append(w.doc[:0], p.words...)
	for _, j := range p.joints {
		w.doc = append(append(w.doc, jointToken(j)...), '\n')
	}
	_, err = w.c.ExecContext(ctx, "INSERT INTO feature(rowid, words) VALUES(?, ?)", id, string(w.doc))
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
	words := make([]string, 0, len(w.words))
	for word := range w.words {
		words = append(words, word)
	}
	slices.Sort(words)
	list := []byte("\n" + strings.Join(words, "\n") + "\n")
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
