package catalog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/atomicfile"
)

// Name is the file's name in the cache folder.
const Name = "catalog.db"

// DB is an open catalogue. Methods may be called from several goroutines.
type DB struct {
	path string
	file os.FileInfo // what was opened: another process may have replaced it since
	sql  *sql.DB
}

// Open opens the catalogue in a cache folder and makes it if it is not there. A
// damaged one is set aside first. The error is why there is none; everything works
// without one.
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

// open gives a DB also with an error, when there is a file.
func open(ctx context.Context, path string) (*DB, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would make it readable by all
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	// It is derived: what a power cut takes is read again, so nothing is synced.
	options := url.Values{"_pragma": {"busy_timeout(5000)", "page_size(16384)", "journal_mode(WAL)", "synchronous(OFF)", "temp_store(MEMORY)", "cache_size(-16000)"}}
	handle, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db := &DB{path: path, file: info, sql: handle}
	err = db.prepare(ctx)
	// Two that open a new file at once both want it in WAL mode, and the one that comes
	// second gets SQLITE_BUSY without the wait that it asked for.
	for end := time.Now().Add(patience); busy(err) && time.Now().Before(end); err = db.prepare(ctx) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return db, ctx.Err()
		}
	}
	return db, err
}

// patience is how long a writer waits for another one.
const patience = 5 * time.Second

func busy(err error) bool {
	var failed *sqlite.Error
	return errors.As(err, &failed) && failed.Code()&0xff == sqlite3.SQLITE_BUSY
}

// prepare makes the tables, unless they are there.
func (db *DB) prepare(ctx context.Context) error {
	var have int
	if err := db.sql.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == version {
		return err
	}
	return db.write(ctx, func(c *sql.Conn) error {
		if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil || have == version {
			return err
		}
		_, err := c.ExecContext(ctx, "DROP TABLE IF EXISTS task; DROP TABLE IF EXISTS gram;"+dropRows+dropText+fmt.Sprintf(schema, version))
		return err
	})
}

// write runs f in a transaction that no other writer is in.
func (db *DB) write(ctx context.Context, f func(*sql.Conn) error) error {
	return db.writeWithin(ctx, patience, f)
}

// writeWithin is write that waits up to wait for another writer.
func (db *DB) writeWithin(ctx context.Context, wait time.Duration, f func(*sql.Conn) error) error {
	c, err := db.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // it is given back; that fails when it was thrown away
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

// rollback ends a transaction. The context may be what failed, so it is not asked. A
// connection on which that fails is not used again; SQLite has then ended the
// transaction by itself, or will with the connection.
func rollback(ctx context.Context, c *sql.Conn) {
	if _, err := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// Close lets go of the file.
func (db *DB) Close() error {
	if err := db.sql.Close(); err != nil {
		return fmt.Errorf("close the catalogue %s: %w", db.path, err)
	}
	return nil
}

// Damaged reports whether an error means that the file is no catalogue (any more).
func Damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT:
			return true // ERROR is what a missing table gives: another program's file
		}
	}
	return errors.Is(err, ErrDamaged)
}

// SetAside closes the file and renames it, so that the next Open begins a new one.
// The newest damaged one is kept, for whoever wants to know. A file that another
// process began in the meantime stays.
func (db *DB) SetAside() error {
	_ = db.sql.Close() // of a damaged file; there is nothing to lose
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
