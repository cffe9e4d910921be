// Package postgres keeps the catalogue (see package catalog) in a PostgreSQL database that several servers share.
//
// # Tables
//
// They are in the schema roost:
//
//	catalog_sources, catalog_rows   from which lists are made
//	catalog_tasks, catalog_parts    the texts: compressed parts, and for each the numbers of its words and joints
//	catalog_words                   the lists of all words
//	catalog_turns                   a row for rows and one for texts: the server that has locked it writes
//
// Each of them may be emptied at any time, and is filled again by lists and searches. They are unlogged: a crash of the
// database empties them, and a replica that becomes the primary begins with none.
//
// # Answers
//
// They are those of the file: the words, joints, parts and lists of words are the same, and catalog.Query.Match decides.
// A GIN index finds the parts that have a word or a joint by its number. Two words of one number cost a part
// that is read for nothing.
//
// Rejected: tsvector, which holds up to 1 MB of words and no text that is not UTF-8; pg_trgm over the words, which finds
// no two characters, needs a right to install, and a row a word, for which writers would wait.
//
// # Several servers
//
// A reader reads one state, in a transaction. Writers of one kind take turns and wait for each other up to a time.
// Rows belong to one build of the program, and texts to one version of their derivation, so that servers of two versions
// do not undo each other's work. A server keeps the lists of words in memory, and reads those that are new. At most half
// of its connections read texts at the same time, because a search that does needs further ones.
//
// # Limits
//
// The database takes about twice as long as the file to index a text, and twice the room: GIN takes one word at a time.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/database"
)

// patience limits how long a writer of texts waits for another one.
const patience = 5 * time.Second

// DB is the catalogue in a database. It is safe for concurrent use.
type DB struct {
	db      *database.DB
	reading chan struct{} // a token for each snapshot: a search that reads in a snapshot needs further connections

	mu    sync.Mutex
	words map[wordsKey]catalog.WordList // of the snapshot that was read last
}

// Open uses db, which must stay open as long as the catalogue is used.
func Open(db *database.DB) *DB {
	return &DB{db: db, reading: make(chan struct{}, max(1, db.MaxConns()/2))}
}

// Close does nothing: the database stays open.
func (db *DB) Close() error { return nil }

// The turns that writers take.
const (
	rowsTurn  = "rows"
	textsTurn = "texts"
)

// errBusy: another writer did not end in time.
var errBusy = errors.New("another server is writing into it")

// write runs f in a transaction while no other writer has this turn. It waits for up to wait until the turn is free.
func (db *DB) write(ctx context.Context, turn string, wait time.Duration, f func(*database.Tx) error) error {
	err := db.db.Transaction(ctx, func(tx *database.Tx) error {
		// A server that hangs must not keep the others from writing. What a crash takes is derived again.
		limits := fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = '30s'; SET LOCAL synchronous_commit = off", max(1, wait.Milliseconds()))
		if _, err := tx.Exec(ctx, limits); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
INSERT INTO roost.catalog_turns VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET turns = catalog_turns.turns + 1`, turn)
		if err != nil {
			return err
		}
		return f(tx)
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "55P03" { // lock_not_available
		return errBusy
	}
	return database.Explained(err)
}

// SetAside removes all rows and texts, because some are damaged: they are derived again.
func (db *DB) SetAside() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := db.write(ctx, rowsTurn, patience, func(tx *database.Tx) error { return remove(ctx, tx, "catalog_rows", "catalog_sources") })
	if err == nil {
		err = db.write(ctx, textsTurn, patience, func(tx *database.Tx) error {
			return remove(ctx, tx, "catalog_parts", "catalog_tasks", "catalog_words")
		})
	}
	return api.Failed(err, "remove the damaged catalogue from the database")
}

// remove empties tables. TRUNCATE would remove the rows for readers, too.
func remove(ctx context.Context, tx *database.Tx, tables ...string) error {
	for _, table := range tables {
		if _, err := tx.Exec(ctx, "DELETE FROM roost."+table); err != nil {
			return err
		}
	}
	return nil
}
