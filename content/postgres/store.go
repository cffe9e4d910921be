package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/payload"
	"github.com/roost-dev/roost/internal/failpoint"
)

// Store is a content store of the database.
type Store struct {
	in     *Stores
	name   string
	holder int64

	mu      sync.Mutex // guards the next fields
	id      int32      // 0: the store is not known to exist
	damaged map[content.Key]bool

	hold  sync.Mutex           // guards the next fields; held during a request to the database
	keeps int                  // that are open, those of batches included
	lease int64                // the lease for which known is valid
	known map[content.Key]bool // true: held; false: absent, so it may be written again
	stale bool                 // rows of ended holds may still exist
}

// lockClass is the class of the locks of stores. The number is arbitrary.
const lockClass = 0x726f6f73

const (
	lockShared = `SELECT pg_advisory_xact_lock_shared($1, $2)`
	lockAlone  = `SELECT pg_advisory_xact_lock($1, $2)`
)

// row returns the number of the store in the database; 0 when it does not exist.
func (s *Store) row(ctx context.Context) (int32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != 0 {
		return s.id, nil
	}
	_, err := database.Found(s.in.db.QueryRow(ctx, `SELECT id FROM roost.content_stores WHERE name = $1`, s.name), &s.id)
	return s.id, err
}

// create is row, except that it makes the store if it does not exist.
func (s *Store) create(ctx context.Context) (int32, error) {
	if id, err := s.row(ctx); id != 0 || err != nil {
		return id, err
	}
	if _, err := s.in.db.Exec(ctx, `INSERT INTO roost.content_stores (name) VALUES ($1) ON CONFLICT DO NOTHING`, s.name); err != nil {
		return 0, err
	}
	return s.row(ctx)
}

func (s *Store) setDamaged(damaged bool, keys ...content.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if damaged {
			s.damaged[k] = true
		} else {
			delete(s.damaged, k)
		}
	}
}

func (s *Store) isDamaged(k content.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged[k]
}

// Contains implements content.Store.
func (s *Store) Contains(ctx context.Context, h content.Hash) bool {
	k, err := h.Key()
	if err != nil || s.isDamaged(k) {
		return false
	}
	_, there, err := s.size(ctx, k)
	return there && err == nil
}

// size returns the length of a content, and whether the store has it.
func (s *Store) size(ctx context.Context, k content.Key) (size int64, there bool, err error) {
	id, err := s.row(ctx)
	if id == 0 || err != nil {
		return 0, false, err
	}
	there, err = database.Found(s.in.db.QueryRow(ctx, `
SELECT c.size FROM roost.kept k JOIN roost.contents c ON c.hash = k.hash WHERE k.store = $1 AND k.hash = $2`, id, k[:]), &size)
	return size, there, err
}

// Read implements content.Store.
func (s *Store) Read(ctx context.Context, h content.Hash, limit int64) ([]byte, error) {
	var out bytes.Buffer
	if err := s.copy(ctx, h, limit, &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Verify implements content.Store.
func (s *Store) Verify(ctx context.Context, h content.Hash) error {
	return s.copy(ctx, h, 0, io.Discard)
}

// piecesAtOnce is the number of pieces of a content in one request.
const piecesAtOnce = 16

func (s *Store) copy(ctx context.Context, h content.Hash, limit int64, to io.Writer) error {
	k, err := h.Key()
	if err != nil {
		return fmt.Errorf("%w: %w", err, content.ErrMissing)
	}
	size, there, err := s.size(ctx, k)
	switch {
	case err != nil:
		return fmt.Errorf("content %s: %w", h, err)
	case !there:
		return fmt.Errorf("content %s %w", h, content.ErrMissing)
	case limit > 0 && size > limit:
		return fmt.Errorf("content %s %w", h, content.ErrTooLarge)
	}
	sum := sha256.New()
	var pieces bytes.Buffer
	for n, count := int64(0), payload.Count(size); n < count && err == nil; n += piecesAtOnce {
		last := min(n+piecesAtOnce, count) - 1
		err = payload.Read(ctx, s.in.db, k[:], size, n, last, func(_ int64, data []byte) error {
			_, err := pieces.Write(data)
			return err
		})
		if err == nil { // a slow writer keeps no connection
			_, err = pieces.WriteTo(io.MultiWriter(to, sum))
		}
	}
	if err == nil && !bytes.Equal(sum.Sum(nil), k[:]) {
		err = errors.Join(payload.ErrDamaged, errors.New("the bytes differ from the hash"))
	}
	if !errors.Is(err, payload.ErrDamaged) {
		if err != nil {
			err = fmt.Errorf("content %s: %w", h, err)
		}
		return err
	}
	if _, there, gone := s.size(ctx, k); gone != nil || !there { // a collection removed it since
		return errors.Join(gone, fmt.Errorf("content %s %w", h, content.ErrMissing))
	}
	s.setDamaged(true, k)
	return fmt.Errorf("content %s %w: %w", h, content.ErrDamaged, err)
}

// Manifest implements content.Store.
func (s *Store) Manifest(ctx context.Context, h content.Hash) (content.Manifest, error) {
	var m content.Manifest
	data, err := s.Read(ctx, h, content.MaxManifest)
	if err != nil {
		return m, err
	}
	return m, api.Failed(json.Unmarshal(data, &m), "content %s %w: it is not a manifest", h, content.ErrDamaged)
}

// Name implements content.Store.
func (s *Store) Name(ctx context.Context, owner string) (content.Hash, error) {
	if err := content.CheckOwner(owner); err != nil {
		return "", err
	}
	var hash []byte
	found := false
	id, err := s.row(ctx)
	if id != 0 && err == nil {
		found, err = database.Found(s.in.db.QueryRow(ctx, `SELECT manifest FROM roost.owners WHERE store = $1 AND owner = $2`, id, owner), &hash)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("read the name %s: %w", owner, err)
	case !found:
		return "", fmt.Errorf("the name %s %w", owner, content.ErrMissing)
	}
	return content.Key(hash).Hash(), nil
}

// Names implements content.Store. It converts times to this machine's clock, so that ages are the same as in the
// database.
func (s *Store) Names(ctx context.Context) (map[string]content.Named, error) {
	names := map[string]content.Named{}
	id, err := s.row(ctx)
	if id == 0 || err != nil {
		return names, err
	}
	rows := s.in.db.Query(ctx, `SELECT owner, manifest, clock_timestamp() - at FROM roost.owners WHERE store = $1`, id)
	var owner string
	var hash []byte
	var age time.Duration
	now := time.Now()
	err = rows.Each([]any{&owner, &hash, &age}, func() error {
		names[owner] = content.Named{Manifest: content.Key(hash).Hash(), At: now.Add(-age)}
		return nil
	})
	return names, api.Failed(err, "read the names of the content store")
}

// SetName implements content.Store.
func (s *Store) SetName(ctx context.Context, owner string, h content.Hash) error {
	k, err := h.Key()
	if err = errors.Join(err, content.CheckOwner(owner)); err == nil {
		err = s.setName(ctx, owner, k)
	}
	return api.Failed(database.Explained(err), "give content %s to %s", h, owner)
}

func (s *Store) setName(ctx context.Context, owner string, k content.Key) error {
	defer s.Keep()() // what rely finds is held
	if found, err := s.rely(ctx, []content.Key{k}); err != nil || !found[k] {
		return errors.Join(err, content.ErrMissing)
	}
	id, err := s.row(ctx)
	if err != nil {
		return err
	}
	err = s.in.db.Transaction(ctx, func(tx *database.Tx) error {
		if _, err := tx.Exec(ctx, lockShared, lockClass, id); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, `
INSERT INTO roost.owners (store, owner, manifest) SELECT store, $2, hash FROM roost.kept WHERE store = $1 AND hash = $3 AND manifest
ON CONFLICT (store, owner) DO UPDATE SET manifest = EXCLUDED.manifest, at = EXCLUDED.at`, id, owner, k[:])
		if err == nil && done == 0 {
			err = content.ErrMissing
		}
		failpoint.Hit("content.postgres.name.written")
		return err
	})
	failpoint.Hit("content.postgres.name.committed")
	return err
}

// RemoveName implements content.Store.
func (s *Store) RemoveName(ctx context.Context, owner string) error {
	err := content.CheckOwner(owner)
	if err == nil {
		var id int32
		if id, err = s.row(ctx); id == 0 && err == nil {
			return nil
		}
		if err == nil {
			_, err = s.in.db.Exec(ctx, `DELETE FROM roost.owners WHERE store = $1 AND owner = $2`, id, owner)
		}
	}
	return api.Failed(database.Explained(err), "remove the name %s from the content store", owner)
}

// Size implements content.Store.
func (s *Store) Size(ctx context.Context) (n int64, err error) {
	id, err := s.row(ctx)
	if id != 0 && err == nil {
		err = s.in.db.QueryRow(ctx, `SELECT bytes FROM roost.content_stores WHERE id = $1`, id).Scan(&n)
	}
	return n, api.Failed(err, "measure the content store")
}
