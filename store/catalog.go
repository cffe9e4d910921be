package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-dev/roost/catalog"
)

// Catalog keeps what lists and searches derived of tasks: a file in the cache folder (catalog.DB), or tables that several
// servers share (catalog/postgres). See package catalog for what its methods do.
type Catalog interface {
	Rows(ctx context.Context, build uint64, extent catalog.Extent) ([]catalog.SourceRows, error)
	Summaries(ctx context.Context, build uint64, source string, rows []*catalog.Row) error
	Keep(ctx context.Context, build uint64, changes []catalog.Change, forget int64, wait time.Duration) error
	ForgetRows(ctx context.Context) error

	Snapshot(ctx context.Context) (*catalog.Snapshot, error)
	Put(ctx context.Context, list []catalog.Entry) error
	Drop(ctx context.Context, keys []string) error

	// SetAside removes the catalogue, because it is damaged: the next Open begins a new one.
	SetAside() error

	// Close ends one list or search. A shared catalogue stays open.
	Close() error
}

// OpenCatalog opens the catalogue. nil without an error: the store keeps none.
func (s *Store) OpenCatalog(ctx context.Context) (Catalog, error) {
	switch {
	case s.opt.Catalog != nil:
		return s.opt.Catalog, nil
	case s.opt.Cache == "":
		return nil, nil
	}
	db, err := catalog.Open(ctx, s.opt.Cache)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// VerifyCatalog opens the catalogue to check it, see catalog.Verify. A shared catalogue needs no check: its readers notice
// damage.
func (s *Store) VerifyCatalog(ctx context.Context) (Catalog, error) {
	if s.opt.Catalog != nil || s.opt.Cache == "" {
		return s.OpenCatalog(ctx)
	}
	db, err := catalog.Verify(ctx, s.opt.Cache)
	if db == nil {
		return nil, err
	}
	return db, err
}

// KeepsCatalog reports whether the store has a place for a catalogue.
func (s *Store) KeepsCatalog() bool { return s.opt.Catalog != nil || s.opt.Cache != "" }

// CatalogMismatch describes a problem of the whole catalogue.
func (s *Store) CatalogMismatch(problem string, stale bool) Mismatch {
	m := Mismatch{Path: s.opt.Cache, File: filepath.Join(s.opt.Cache, catalog.Name), Problem: problem, Source: "the tasks", Stale: stale}
	if s.opt.Catalog != nil {
		m.Path, m.File = "the database", "the catalogue in the database"
	}
	return m
}

// reading is a catalogue while its rows are read. A nil reading has no rows.
type reading struct {
	done    chan struct{}
	db      Catalog
	sources []catalog.SourceRows
}

// readRows opens the catalogue and begins to read its rows, see catalog.DB.Rows; nil without a place for one. A catalogue
// that cannot be used costs time and is no error; a damaged one is set aside and replaced.
func (s *Store) readRows(ctx context.Context, extent catalog.Extent) *reading {
	if !s.KeepsCatalog() {
		return nil
	}
	r := &reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for range 2 { // a damaged catalogue is set aside, and a new one opened
			db, err := s.OpenCatalog(ctx)
			if err != nil {
				return
			}
			sources, err := db.Rows(ctx, s.build(), extent)
			switch {
			case err == nil:
				r.db, r.sources = db, sources
				return
			case !catalog.Damaged(err):
				_ = db.Close() // it was only read
				return
			case db.SetAside() != nil:
				return
			}
		}
	}()
	return r
}

// DB returns the catalogue; nil when it cannot be used.
func (r *reading) DB() Catalog {
	if r == nil {
		return nil
	}
	<-r.done
	return r.db
}

// Sources returns the rows that were read.
func (r *reading) Sources() []catalog.SourceRows {
	if r.DB() == nil {
		return nil
	}
	return r.sources
}

// Close closes the catalogue. Rows that were kept stay in it.
func (r *reading) Close() {
	if db := r.DB(); db != nil {
		_ = db.Close()
	}
}

// build returns a number for each program that may derive rows in its own way: see the variable build, and sameBuild.
func (s *Store) build() uint64 {
	if s.opt.Catalog != nil {
		return sameBuild()
	}
	return build()
}

// rowsVersion is raised when rows are derived in another way. The number of a build includes the program's file as well.
const rowsVersion = 4

// build is a number for each program file. Developers forget to raise rowsVersion, so each program file counts as a version
// of its own: the first list after an update reads every task once.
var build = numberOfProgram(func(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return catalog.Mix(uint64(info.Size()), uint64(info.ModTime().UnixNano())), nil
})

// sameBuild is a build number that copies of one program on several machines share. It reads the program's file,
// which is too slow for a command that lists once.
var sameBuild = numberOfProgram(func(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return binary.LittleEndian.Uint64(sum.Sum(nil)), err
})

func numberOfProgram(of func(path string) (uint64, error)) func() uint64 {
	return sync.OnceValue(func() uint64 {
		number := catalog.Mix(rowsVersion, uint64(os.PathSeparator))
		if path, err := os.Executable(); err == nil {
			if file, err := of(path); err == nil {
				number = catalog.Mix(number, file)
			}
		}
		return number
	})
}
