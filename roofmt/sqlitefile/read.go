// Package sqlitefile reads a SQLite database that another program owns. That program may have it open, may be in the
// middle of a transaction, or may have been killed in one. It never notices the reader, which takes no lock on its
// files, makes no file beside them, and writes nothing.
//
// SQLite opens a database without a log in place, as immutable: then SQLite takes no lock. To apply a write-ahead
// log, or to roll back an unfinished transaction, SQLite must write; so it gets a copy of database and log in a
// temporary folder. In both cases Read compares the states of the files before and after, so that pages of two
// transactions never mix.
//
// Limits: a database that changes during the read is read again, a few times; if it keeps changing, that is an error
// (ErrRestless). At most 256 MB are copied: a larger database is read without its write-ahead log, so that the newest
// few megabytes of changes are missing, and not at all with a rollback journal. Encrypted databases cannot be read.
// (Assembling the pages here, from database and log, was rejected: it repeats what SQLite does.)
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/sleep"
)

// The reasons why a database cannot be read.
var (
	ErrNoDatabase = errors.New("not a SQLite database")
	ErrRestless   = errors.New("it changes while it is read")
	errTooLong    = errors.New("it is too long to be read beside an unfinished transaction")
)

// tries is the number of reads of a changing database. pause is the wait after the first one; it doubles each time.
const (
	tries = 6
	pause = 5 * time.Millisecond
)

// Read calls f with a database in the state of its last finished transaction. f may only read. If the database
// changed during the call, Read calls f again, so f must start over each time. The error wraps fs.ErrNotExist or
// fs.ErrPermission, ErrNoDatabase, ErrRestless, or the error of f; SQLite's own errors report damage.
func Read(ctx context.Context, file string, f func(context.Context, *sql.DB) error) error {
	var last error
	for try := range tries {
		if try > 0 {
			if !sleep.For(ctx, pause<<(try-1)) {
				return fmt.Errorf("reading the database %s: %w", file, ctx.Err())
			}
		}
		before := stateOf(file)
		last = readOnce(ctx, file, f)
		if before == stateOf(file) || errors.Is(last, fs.ErrNotExist) || errors.Is(last, fs.ErrPermission) || ctx.Err() != nil {
			if last != nil {
				last = fmt.Errorf("reading the database %s: %w", file, last)
			}
			return last
		}
	}
	return fmt.Errorf("reading the database %s: %w", file, errors.Join(ErrRestless, last))
}

// stateOf identifies the content of a database and its logs. A write-ahead log only grows while the database stays
// the same; its first bytes change when it starts over.
func stateOf(file string) string {
	state := ""
	for _, suffix := range []string{"", "-journal"} {
		if info, err := os.Stat(file + suffix); err == nil {
			state += fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		state += "|"
	}
	var head [32]byte
	if log, err := open(file + "-wal"); err == nil {
		n, _ := io.ReadFull(log, head[:]) // a shorter one holds nothing
		state += string(head[:n])
		log.Close()
	}
	return state
}

// open opens a regular file.
func open(file string) (*os.File, error) {
	f, err := inputfile.Open(file)
	if errors.Is(err, inputfile.ErrIrregular) {
		err = fmt.Errorf("%w: %w", ErrNoDatabase, err)
	}
	return f, err
}

// sizeOf returns the size of a file; 0 when there is none.
func sizeOf(file string) int64 {
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

const (
	magic   = "SQLite format 3\x00"
	maxCopy = 256 << 20
)

// readOnce reads the database as it is now.
func readOnce(ctx context.Context, file string, f func(context.Context, *sql.DB) error) (err error) {
	db, err := open(file)
	if err != nil {
		return err
	}
	head := make([]byte, len(magic))
	_, err = io.ReadFull(db, head)
	db.Close()
	whole, log, journal := sizeOf(file), sizeOf(file+"-wal"), sizeOf(file+"-journal")
	if (err != nil || string(head) != magic) && (whole > 0 || log == 0) {
		return fmt.Errorf("the file has no SQLite header: %w", ErrNoDatabase)
	}
	options := "mode=ro&immutable=1"
	if log+journal > 0 && whole+log+journal <= maxCopy {
		dir, err := os.MkdirTemp("", "roost-database-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a copy in a folder for temporary files
		for _, suffix := range []string{"", "-wal", "-journal"} {
			if err := copyFile(filepath.Join(dir, "copy.db"+suffix), file+suffix); err != nil {
				return err
			}
		}
		file, options = filepath.Join(dir, "copy.db"), "mode=rw"
	} else if journal > 0 {
		return errTooLong
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options + "&_pragma=query_only(1)&_pragma=cache_size(-2000)"}
	handle, err := sql.Open("sqlite", address.String())
	if err != nil {
		return err
	}
	handle.SetMaxOpenConns(1)
	return errors.Join(f(ctx, handle), handle.Close())
}

// copyFile copies a regular file; it does nothing if the file is absent or not regular.
func copyFile(to, from string) error {
	in, err := open(from)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoDatabase) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Newest returns the time of a database's last change, in nanoseconds since 1970, and the size of it and its log in
// bytes: while both stay the same, so does the content. Zeros mean no database.
func Newest(path string) (changed, size int64) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0
	}
	changed, size = info.ModTime().UnixNano(), info.Size()
	if info, err := os.Stat(path + "-wal"); err == nil {
		changed, size = max(changed, info.ModTime().UnixNano()), size+info.Size()
	}
	return changed, size
}
