// Package catalog keeps what can be derived of tasks in one SQLite file in the cache folder: rows, from which lists are
// made, and the text of messages for search. Package catalog/postgres keeps the same in a database that several servers
// share; both pass the suite of catalogtest.
//
// The tasks are the truth, and the catalogue is derived from them. A row or a text carries the stamp of what it was
// derived from; the caller compares the stamp, and reads the task itself when the stamp differs. The file may be deleted
// at any time. Open sets a damaged file aside and begins a new one; it empties a file of another version. Several
// processes may use the file at once: a reader sees one state and never waits, and writers take turns.
//
// Search filters, then judges. The file keeps texts in compressed parts of some tens of kilobytes. SQLite's full-text
// table indexes for each part its words and its joints: pairs of ends of adjacent words. Characters of Chinese, Japanese
// and Korean count as words, alone and in pairs. A term may be a part of a word, so a search first looks the term up in
// the list of all words; joints find paths, identifiers and phrases. The index names the parts that may hold a query, and
// Query.Match decides: a task that is not in the catalogue yet, whose messages go to the same Match, has the same hits.
//
// Rejected: one full-text row a message with trigrams, which needs several times the text's size and cannot find two
// Chinese characters; places of words in the text, which take as much room as the text; the full-text table's own
// vocabulary, which reads the whole index; rows in a file of their own, which saves 30 ms a list.
//
// A text that several messages of one part have, such as an output that both histories show, is kept and indexed once.
// The catalogue leaves out the details of the environment that an editor adds to each message.
//
// The catalogue keeps no text of a task with more than 64 MB of text; every search reads such a task. (Rejected: to put
// parts of such a task into the file before the task is whole. A rare task would cost rows that no reader may see, and
// their removal after a kill.)
//
// Limits: Match compares terms without case, rune by rune; composed and decomposed accents differ. A phrase whose first
// and last words have one or two letters, and whose words are all common but rarely adjacent, reads many parts, and so
// does a term that is a part of more than manyWords different words. Words of removed tasks stay in the list of words
// until the file is replaced.
package catalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/sleep"
)

// Name is the file's name in the cache folder.
const Name = "catalog.db"

// DB is an open catalogue. Methods may be called from several goroutines.
type DB struct {
	path string
	file os.FileInfo // the opened file: another process may have replaced it since
	sql  *sql.DB
}

// Open opens the catalogue in a cache folder, and makes the file if there is none. It sets a damaged file aside first. A
// caller that gets an error works without a catalogue.
func Open(ctx context.Context, dir string) (*DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the catalogue: %w", err)
	}
	path := filepath.Join(dir, Name)
	db, err := open(ctx, path)
	if db != nil && Damaged(err) {
		if err = db.SetAside(); err == nil {
			db, err = open(ctx, path)
		}
	}
	if err != nil {
		if db != nil {
			_ = db.sql.Close()
		}
		return nil, fmt.Errorf("open the catalogue %s: %w", path, err)
	}
	return db, nil
}

// open opens the file at path. With an error about an existing file it also returns the DB.
func open(ctx context.Context, path string) (*DB, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would make it readable by all
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	// Nothing is synced: what a power cut takes is derived again.
	handle, err := openFile(path, url.Values{"_pragma": {
		"busy_timeout(5000)", "page_size(16384)", "journal_mode(WAL)", "synchronous(OFF)", "temp_store(MEMORY)", "cache_size(-16000)",
	}})
	if err != nil {
		return nil, err
	}
	db := &DB{path: path, file: info, sql: handle}
	err = db.prepare(ctx)
	// Two processes that open a new file at once both set WAL mode, and the second one gets SQLITE_BUSY without the wait
	// that it asked for.
	for end := time.Now().Add(patience); busy(err) && time.Now().Before(end); err = db.prepare(ctx) {
		if !sleep.For(ctx, 10*time.Millisecond) {
			return db, ctx.Err()
		}
	}
	return db, err
}

func openFile(path string, options url.Values) (*sql.DB, error) {
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	return sql.Open("sqlite", address.String())
}

// patience limits how long a writer waits for another one.
const patience = 5 * time.Second

func busy(err error) bool {
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && failed.Code()&0xff == sqlite3.SQLITE_BUSY
}

// prepare makes the tables unless they exist.
func (db *DB) prepare(ctx context.Context) error {
	var have int
	if err := db.sql.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == Version {
		return err
	}
	return db.write(ctx, patience, func(c *sql.Conn) error {
		if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == Version {
			return err
		}
		_, err := c.ExecContext(ctx, "DROP TABLE IF EXISTS task; DROP TABLE IF EXISTS gram;"+dropRows+dropText+fmt.Sprintf(schema, Version))
		return err
	})
}

// write runs f in a transaction while no other writer has one. It waits for up to wait until the other one has ended.
func (db *DB) write(ctx context.Context, wait time.Duration, f func(*sql.Conn) error) error {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it fails when rollback discarded the connection
	if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", wait.Milliseconds())); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = f(c)
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		rollback(ctx, c)
	}
	return err
}

// rollback ends a transaction, even when the end of the context was the failure. It discards a connection on which
// the rollback fails; SQLite has then ended the transaction by itself, or ends it with the connection.
func rollback(ctx context.Context, c *sql.Conn) {
	if _, err := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// Close closes the file.
func (db *DB) Close() error {
	return api.Failed(db.sql.Close(), "close the catalogue %s", db.path)
}

// Damaged reports whether an error means that the file is not, or no longer, a catalogue.
func Damaged(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT:
			return true // ERROR is what a missing table gives: another program's file
		}
	}
	return errors.Is(err, ErrDamaged)
}

// Refused reports whether an error means that the disk does not let the file be opened, such as a disk that is read-only:
// SQLite writes beside a file to read it. The file may be whole.
func Refused(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_CANTOPEN || e.Code()&0xff == sqlite3.SQLITE_READONLY)
}

// SetAside closes the file and renames it, so that the next Open begins a new one. It keeps the newest damaged file for
// investigation. A file that another process began in the meantime stays in its place.
func (db *DB) SetAside() error {
	_ = db.sql.Close() // a damaged file has nothing to lose
	now, err := os.Stat(db.path)
	if err != nil || !os.SameFile(now, db.file) {
		return nil
	}
	for _, end := range []string{"-wal", "-shm", ""} {
		if err := atomicfile.Rename(db.path+end, db.path+".damaged"+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set the damaged catalogue aside: %w", err)
		}
	}
	return nil
}

// Version is the version of the tables and of everything that is derived into them. Open empties a file of another
// version.
const Version = 13

const schema = `
CREATE TABLE task(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL);
` + rowSchema + textSchema + `
PRAGMA user_version = %d;`

// A list reads every row, and the titles and summaries of one page: titles and summaries have a table of their own, so
// that a scan of the rows does not read their pages.
const rowSchema = `
CREATE TABLE source(id INTEGER PRIMARY KEY, name UNIQUE, build, seen, body BLOB NOT NULL, checksum);
CREATE TABLE row(id INTEGER PRIMARY KEY, source INTEGER, name, digest, body BLOB NOT NULL, checksum, UNIQUE(source, name));
CREATE TABLE summary(row INTEGER PRIMARY KEY, title BLOB NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TRIGGER row_gone AFTER DELETE ON row BEGIN DELETE FROM summary WHERE row = old.id; END;`

const dropRows = "DROP TABLE IF EXISTS source; DROP TABLE IF EXISTS row; DROP TABLE IF EXISTS summary;"

// A search reads the part of every candidate, and the body of a few parts. SQLite's full-text table has one document
// for each part: the part's distinct words and joints, already folded and cut, without places (detail=none) and
// without a copy of the words. Its ascii tokenizer then only cuts at line breaks. The vocabulary holds the words in
// sorted lists, because a term may be a part of a word, and a scan of the full-text table's own vocabulary takes
// seconds.
const textSchema = `
CREATE TABLE part(id INTEGER PRIMARY KEY AUTOINCREMENT, task INTEGER NOT NULL, first INTEGER NOT NULL);
CREATE INDEX part_task ON part(task);
CREATE TABLE body(part INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE VIRTUAL TABLE feature USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
INSERT INTO feature(feature, rank) VALUES('hashsize', 8388608);
CREATE TABLE vocabulary(id INTEGER PRIMARY KEY, words BLOB NOT NULL);
CREATE TRIGGER part_gone AFTER DELETE ON part BEGIN
	DELETE FROM body WHERE part = old.id;
	DELETE FROM feature WHERE rowid = old.id;
END;`

const dropText = `DROP TABLE IF EXISTS segment; DROP TABLE IF EXISTS post;
DROP TABLE IF EXISTS part; DROP TABLE IF EXISTS body; DROP TABLE IF EXISTS feature; DROP TABLE IF EXISTS vocabulary;`

// Verify opens the catalogue of a cache folder to check it, and reads all of it. It makes no file, changes no row and
// sets nothing aside. It returns nil without an error when there is no file, or when the file has another version and
// the next Open empties it. With an error for which Damaged is true it also returns the DB, so that the caller can
// set the file aside.
func Verify(ctx context.Context, dir string) (*DB, error) {
	path := filepath.Join(dir, Name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the catalogue: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the catalogue %s: it is no plain file", path)
	}
	handle, err := openFile(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return nil, fmt.Errorf("open the catalogue %s: %w", path, err)
	}
	db := &DB{path: path, file: info, sql: handle}
	var have int
	if err := handle.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return db, fmt.Errorf("read the catalogue %s: %w", path, err)
	}
	if have != Version {
		return nil, db.Close()
	}
	var said string
	if err := handle.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return db, fmt.Errorf("read the catalogue %s: %w", path, err)
	}
	if said != "ok" {
		return db, fmt.Errorf("%w: %s", ErrDamaged, said)
	}
	return db, nil
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

// scan calls f with each row of a query. It calls the driver itself: for ten thousand rows, database/sql would take half
// of a list's time to convert columns.
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
	return api.Failed(err, "read the catalogue")
}
