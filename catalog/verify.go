package catalog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Verify opens the catalogue of a cache folder to look at it, and reads it wholly. It
// makes none, changes no row and sets nothing aside. nil without an error: there is
// none, or it is of another version and the next Open empties it. An error that Damaged knows
// comes with the DB, so that it can be set aside.
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
	options := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)"}}
	handle, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the catalogue %s: %w", path, err)
	}
	db := &DB{path: path, file: info, sql: handle}
	var have int
	if err := handle.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return db, fmt.Errorf("read the catalogue %s: %w", path, err)
	}
	if have != version {
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

// Digest is one of the entry's text, to be compared with that of what was kept.
func (e Entry) Digest() []byte {
	h := e.shed
	if h == nil {
		h = sha256.New()
	}
	for _, p := range e.parts {
		h.Write(p.body)
	}
	return h.Sum(nil)
}

// Shed lets go of what is closed, when the builder holds much: its entry is good for
// a Digest from then on, and for nothing else.
func (b *Builder) Shed() {
	if !b.Heavy() {
		return
	}
	if b.shed == nil {
		b.shed = sha256.New()
	}
	for _, p := range b.parts {
		b.shed.Write(p.body)
	}
	b.parts, b.held = nil, 0
}

// Digest is that of the text which was kept of a task.
func (s *Snapshot) Digest(ctx context.Context, id int64) ([]byte, error) {
	h := sha256.New()
	err := s.each(ctx, func(rows *sql.Rows) error {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		h.Write(body)
		return nil
	}, "SELECT text FROM body JOIN part ON part.id = part WHERE task = ? ORDER BY part", id)
	return h.Sum(nil), err
}
