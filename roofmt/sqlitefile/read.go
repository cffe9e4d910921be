package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
	"modernc.org/sqlite/vfs"
)

// inside is what SQLite knows the database as.
const inside = "main.db"

// tries is how often a changing database is read. pause is the wait after the first time; it doubles each time.
const (
	tries = 6
	pause = 5 * time.Millisecond
)

// Read calls f with a database as its last finished transaction left it. f may only read. When the database changed
// during the call, Read calls f again, so f must start over each time. The error wraps fs.ErrNotExist or
// fs.ErrPermission, ErrNoDatabase, ErrRestless, or the error of f; SQLite's own errors report damage.
func Read(ctx context.Context, file string, f func(context.Context, *sql.DB) error) error {
	var last error
	for try := range tries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return wrap(file, ctx.Err())
			case <-time.After(pause << (try - 1)):
			}
		}
		img, err := open(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return wrap(file, err)
		}
		rested := false
		if err == nil {
			err = img.with(ctx, f)
			rested = img.rested()
			err = errors.Join(err, img.file.Close())
		} else {
			rested = errors.Is(err, ErrNoDatabase) || errors.Is(err, errTooLong)
		}
		if rested || ctx.Err() != nil {
			return wrap(file, err)
		}
		last = err
	}
	return wrap(file, errors.Join(ErrRestless, last))
}

// with opens the image in SQLite.
func (img *image) with(ctx context.Context, f func(context.Context, *sql.DB) error) error {
	if img.pages == 0 {
		return fmt.Errorf("it is empty: %w", ErrNoDatabase)
	}
	name, system, err := vfs.New(one{img})
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+inside+"?vfs="+name+"&mode=ro&immutable=1&_pragma=query_only(1)&_pragma=cache_size(-2000)")
	if err == nil {
		db.SetMaxOpenConns(1) // an image has one place to read from
		err = errors.Join(f(ctx, db), db.Close())
	}
	return errors.Join(err, system.Close())
}

// one is a file system with one file in it.
type one struct{ img *image }

// Open implements fs.FS.
func (o one) Open(name string) (fs.File, error) {
	if path.Base(name) != inside {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.img, nil
}
