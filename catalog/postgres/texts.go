package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/database"
)

// part is a part of a task's text as it is stored.
type part struct {
	first    int64
	features []int32
	body     []byte
}

// Put is catalog.DB.Put.
func (db *DB) Put(ctx context.Context, list []catalog.Entry) error {
	last := map[string]*catalog.Entry{}
	// What takes time comes before the transaction, in which the other servers wait.
	words, parts := catalog.WordSet{}, map[string][]part{}
	for i := range list {
		last[list[i].Key] = &list[i]
	}
	var hashes, keys, stamps [][]byte
	var counts []int64
	for key, e := range last {
		hashes, keys, stamps = append(hashes, hash(key)), append(keys, []byte(key)), append(stamps, []byte(e.Stamp))
		counts = append(counts, int64(len(e.Parts)))
		for _, p := range e.Parts {
			words.Add(p)
			parts[key] = append(parts[key], part{int64(p.First), features(p), p.Body})
		}
	}
	err := db.write(ctx, textsTurn, patience, func(tx *database.Tx) error {
		if err := drop(ctx, tx, hashes); err != nil {
			return err
		}
		found := tx.Query(ctx, `
INSERT INTO roost.catalog_tasks (version, parts, key, stamp)
SELECT $1, n.parts, n.key, n.stamp FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS n (parts, key, stamp) RETURNING id, key`,
			catalog.Version, counts, keys, stamps)
		var b database.Batch
		var id int64
		var key []byte
		err := found.Each([]any{&id, &key}, func() error {
			for _, p := range parts[string(key)] {
				b.Queue(`INSERT INTO roost.catalog_parts (task, first, features, body) VALUES ($1, $2, $3, $4)`, id, p.first, p.features, p.body)
			}
			return nil
		})
		if err == nil {
			err = tx.SendBatch(ctx, &b)
		}
		if err != nil {
			return err
		}
		return db.extend(ctx, tx, words)
	})
	return api.Failed(err, "keep %d tasks in the catalogue", len(list))
}

// Drop is catalog.DB.Drop.
func (db *DB) Drop(ctx context.Context, keys []string) error {
	hashes := api.Each(keys, hash)
	err := db.write(ctx, textsTurn, patience, func(tx *database.Tx) error { return drop(ctx, tx, hashes) })
	return api.Failed(err, "remove %d tasks from the catalogue", len(keys))
}

// drop removes tasks, except those that a newer program derived.
func drop(ctx context.Context, tx *database.Tx, hashes [][]byte) error {
	_, err := tx.Exec(ctx, `
WITH gone AS (DELETE FROM roost.catalog_tasks WHERE sha256(key) = ANY ($1) AND version <= $2 RETURNING id)
DELETE FROM roost.catalog_parts WHERE task IN (SELECT id FROM gone)`, hashes, catalog.Version)
	return err
}

func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// features returns the numbers of a part's words and joints, in the order in which the index sorts them.
func features(p catalog.Kept) []int32 {
	out := make([]int32, 0, len(p.Joints)+bytes.Count(p.Words, []byte("\n")))
	for word := range bytes.Lines(p.Words) {
		out = append(out, wordNumber(word[:len(word)-1]))
	}
	out = append(out, api.Each(p.Joints, jointNumber)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// wordNumber returns the number of a word in the index, at least 0.
func wordNumber(word []byte) int32 {
	h := fnv.New64a()
	_, _ = h.Write(word) // it never fails
	n := h.Sum64()
	return int32((n ^ n>>31) & 0x7fffffff)
}

func jointNumber(j uint32) int32 { return -1 - int32(j) }

// extend adds new words to the vocabulary.
func (db *DB) extend(ctx context.Context, tx *database.Tx, words catalog.WordSet) error {
	known, err := db.vocabulary(ctx, tx)
	if err != nil {
		return err
	}
	add, instead := known.Extend(words)
	if len(instead) > 0 {
		if _, err := tx.Exec(ctx, `DELETE FROM roost.catalog_words WHERE id = ANY ($1)`, instead); err != nil {
			return err
		}
	}
	if len(add.Words) == 0 {
		return nil
	}
	packed := add.Pack()
	_, err = tx.Exec(ctx, `INSERT INTO roost.catalog_words (checksum, words) VALUES ($1, $2)`, checksum(packed), packed)
	return err
}

func checksum(packed []byte) int64 { return int64(catalog.MixText(0, string(packed))) }

// wordsKey identifies a list of words in memory. The id alone may be used again after the table was emptied.
type wordsKey struct{ id, checksum int64 }

// vocabulary returns all lists of words, and reads those that are not in memory.
func (db *DB) vocabulary(ctx context.Context, tx *database.Tx) (catalog.Vocabulary, error) {
	found := tx.Query(ctx, `SELECT id, checksum FROM roost.catalog_words ORDER BY id`)
	var all []wordsKey
	var id, sum int64
	if err := found.Each([]any{&id, &sum}, func() error {
		all = append(all, wordsKey{id, sum})
		return nil
	}); err != nil {
		return nil, err
	}
	db.mu.Lock()
	known := db.words
	db.mu.Unlock()
	now := make(map[wordsKey]catalog.WordList, len(all))
	var missing []int64
	for _, key := range all {
		if list, ok := known[key]; ok {
			now[key] = list
		} else {
			missing = append(missing, key.id)
		}
	}
	if len(missing) > 0 {
		found := tx.Query(ctx, `SELECT id, checksum, words FROM roost.catalog_words WHERE id = ANY ($1)`, missing)
		var packed []byte
		if err := found.Each([]any{&id, &sum, &packed}, func() error {
			if checksum(packed) != sum {
				return fmt.Errorf("%w: a stored list of words differs from its checksum", catalog.ErrDamaged)
			}
			list, err := catalog.OpenWordList(id, packed)
			now[wordsKey{id, sum}] = list
			return err
		}); err != nil {
			return nil, err
		}
	}
	db.mu.Lock()
	db.words = now
	db.mu.Unlock()
	return api.Each(all, func(key wordsKey) catalog.WordList { return now[key] }), nil
}

// texts are the texts of the database as one transaction reads them.
type texts struct {
	db  *DB
	tx  *database.Tx
	end func() // of the transaction
}

// Snapshot is catalog.DB.Snapshot. It waits while too many others are open.
func (db *DB) Snapshot(ctx context.Context) (*catalog.Snapshot, error) {
	select {
	case db.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("read the catalogue: %w", ctx.Err())
	}
	tx, end, err := db.db.Snapshot(ctx)
	if err == nil {
		// The planner knows nothing of features, and a scan of all parts would read those of each.
		if _, err = tx.Exec(ctx, "SET LOCAL enable_seqscan = off"); err != nil {
			end()
		}
	}
	if err != nil {
		<-db.reading
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return catalog.NewSnapshot(&texts{db, tx, end}), nil
}

// Close implements catalog.Texts.
func (t *texts) Close() {
	t.end()
	<-t.db.reading
}

// Tasks implements catalog.Texts.
func (t *texts) Tasks(ctx context.Context) (map[string]catalog.Task, error) {
	out, parts := map[string]catalog.Task{}, int64(0)
	found := t.tx.Query(ctx, `SELECT id, parts, key, stamp FROM roost.catalog_tasks WHERE version = $1`, catalog.Version)
	var id, n int64
	var key, stamp []byte
	err := found.Each([]any{&id, &n, &key, &stamp}, func() error {
		out[string(key)] = catalog.Task{ID: id, Stamp: string(stamp)}
		parts += n
		return nil
	})
	there := true
	if err == nil && parts > 0 {
		err = t.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM roost.catalog_parts) AND EXISTS (SELECT FROM roost.catalog_words)`).Scan(&there)
	}
	if err == nil && !there {
		err = fmt.Errorf("%w: a table was emptied", catalog.ErrDamaged)
	}
	return out, api.Failed(err, "read the catalogue")
}

// Vocabulary implements catalog.Texts.
func (t *texts) Vocabulary(ctx context.Context) (catalog.Vocabulary, error) {
	v, err := t.db.vocabulary(ctx, t.tx)
	return v, api.Failed(err, "read the catalogue")
}

// Parts implements catalog.Texts.
func (t *texts) Parts(ctx context.Context, l catalog.Lookup, f func(task int64, p catalog.Part)) error {
	query, args := "SELECT id, task, first FROM roost.catalog_parts WHERE true", []any(nil)
	for _, words := range l.Words {
		any := api.Each(words, func(w string) int32 { return wordNumber([]byte(w)) })
		args = append(args, any)
		query += fmt.Sprintf(" AND features && $%d", len(args))
	}
	if len(l.Joints) > 0 {
		all := api.Each(l.Joints, jointNumber)
		args = append(args, all)
		query += fmt.Sprintf(" AND features @> $%d", len(args))
	}
	found := t.tx.Query(ctx, query, args...)
	var id, task, first int64
	err := found.Each([]any{&id, &task, &first}, func() error {
		f(task, catalog.Part{ID: id, First: int(first)})
		return nil
	})
	return api.Failed(err, "read the catalogue")
}

// How many bodies are read at once: most searches need few.
const (
	firstBodies = 4
	mostBodies  = 64
)

// Bodies implements catalog.Texts.
func (t *texts) Bodies(ctx context.Context, parts []catalog.Part) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for n := firstBodies; len(parts) > 0; n = min(2*n, mostBodies) {
			some := parts[:min(n, len(parts))]
			bodies, err := t.bodies(ctx, some)
			for i := range some {
				if err == nil && bodies[i] == nil {
					err = fmt.Errorf("%w: its body is missing", catalog.ErrDamaged)
				}
				if !yield(bodies[i], err) || err != nil {
					return
				}
			}
			parts = parts[len(some):]
		}
	}
}

func (t *texts) bodies(ctx context.Context, parts []catalog.Part) ([][]byte, error) {
	out, at := make([][]byte, len(parts)), make(map[int64]int, len(parts))
	ids := make([]int64, len(parts))
	for i, p := range parts {
		ids[i], at[p.ID] = p.ID, i
	}
	found := t.tx.Query(ctx, `SELECT id, body FROM roost.catalog_parts WHERE id = ANY ($1)`, ids)
	var id int64
	var body []byte
	err := found.Each([]any{&id, &body}, func() error {
		out[at[id]] = body
		return nil
	})
	return out, err
}

// Whole implements catalog.Texts.
func (t *texts) Whole(ctx context.Context, task int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		found := t.tx.Query(ctx, `SELECT id FROM roost.catalog_parts WHERE task = $1 ORDER BY id`, task)
		parts, err := database.Collect(found, func(r database.Scanner) (p catalog.Part, err error) { return p, r.Scan(&p.ID) })
		if err != nil {
			yield(nil, fmt.Errorf("read the catalogue: %w", err))
			return
		}
		t.Bodies(ctx, parts)(yield)
	}
}
