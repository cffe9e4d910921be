package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/database/lease"
)

// patience bounds the wait for the database in calls without a context.
const patience = 10 * time.Second

// Has implements content.Store.
func (s *Store) Has(ctx context.Context, h content.Hash) bool {
	there, err := s.look(ctx, h, false)
	return there && err == nil
}

// Find implements content.Store.
func (s *Store) Find(ctx context.Context, h content.Hash) (bool, error) { return s.look(ctx, h, true) }

// look reports whether a content is present and held. With fresh, it asks again about one that was absent before.
func (s *Store) look(ctx context.Context, h content.Hash, fresh bool) (bool, error) {
	k, err := h.Key()
	if err != nil || s.isDamaged(k) {
		return false, nil //nolint:nilerr // no content has such a name
	}
	if s.idle() {
		_, there, err := s.size(ctx, k)
		return there, err
	}
	if !fresh {
		if there, known := s.knows(ctx, k); known {
			return there, nil
		}
	}
	found, err := s.rely(ctx, []content.Key{k})
	_, there := found[k]
	return there, err
}

// Prefetch finds out with few requests which of many contents are present, so that Has needs no request for them
// until Settle.
func (s *Store) Prefetch(ctx context.Context, hashes []content.Hash) error {
	if s.idle() {
		return nil
	}
	var keys []content.Key
	for _, h := range hashes {
		if k, err := h.Key(); err == nil {
			if _, known := s.knows(ctx, k); !known {
				keys = append(keys, k)
			}
		}
	}
	const most = 10_000 // contents in one statement
	for len(keys) > 0 {
		n := min(most, len(keys))
		if _, err := s.rely(ctx, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// idle reports whether nothing is held, and contents that are found need not be held.
func (s *Store) idle() bool {
	s.hold.Lock()
	defer s.hold.Unlock()
	return s.keeps == 0 && len(s.known) == 0
}

// knows returns what earlier requests showed about a content. Once the lease has ended, nothing is known.
func (s *Store) knows(ctx context.Context, k content.Key) (there, known bool) {
	s.hold.Lock()
	defer s.hold.Unlock()
	if id, err := s.in.lease.ID(ctx); err != nil || id != s.lease {
		return false, false
	}
	there, known = s.known[k]
	return there, known
}

// rely holds those of the contents that are present, and returns them, each with whether it is a manifest.
func (s *Store) rely(ctx context.Context, keys []content.Key) (map[content.Key]bool, error) {
	found := map[content.Key]bool{}
	id, err := s.row(ctx)
	if id == 0 || err != nil || len(keys) == 0 {
		return found, err
	}
	s.hold.Lock()
	defer s.hold.Unlock()
	err = s.leased(ctx, func(lease int64) error {
		clear(found)
		var b database.Batch
		b.Queue(lockShared, lockClass, id)
		var hash []byte
		var manifest bool
		b.QueueEach([]any{&hash, &manifest}, func() error {
			found[content.Key(hash)] = manifest
			return nil
		}, `
WITH found AS (
	SELECT hash, manifest FROM roost.kept WHERE store = $1 AND hash = ANY($2)
), held AS (
	INSERT INTO roost.held (lease, holder, store, hash) SELECT $3, $4, $1, hash FROM found ON CONFLICT DO NOTHING
)
SELECT hash, manifest FROM found`, id, asBytes(keys), lease, s.holder)
		return s.in.db.SendBatch(ctx, &b)
	})
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, there := found[k]; there && s.isDamaged(k) {
			delete(found, k)
		}
		_, s.known[k] = found[k]
	}
	return found, nil
}

// leased calls do with the present lease. If that lease has ended meanwhile, leased calls do again with a new one.
// Contents that an ended lease held count as never found. The caller holds s.hold.
func (s *Store) leased(ctx context.Context, do func(lease int64) error) error {
	for again := true; ; again = false {
		id, err := s.in.lease.ID(ctx)
		if err != nil {
			return err
		}
		if id != s.lease {
			clear(s.known)
			s.lease = id
		}
		s.stale = true
		if err = do(id); !again || !lease.Ended(err) {
			return err
		}
		s.in.lease.Lost(id)
	}
}

func asBytes(keys []content.Key) [][]byte {
	out := make([][]byte, len(keys))
	for i := range keys {
		out[i] = keys[i][:]
	}
	return out
}

// Keep implements content.Store.
func (s *Store) Keep() (release func()) {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.keeps++
	return sync.OnceFunc(func() {
		s.hold.Lock()
		defer s.hold.Unlock()
		s.keeps--
	})
}

// Settle implements content.Store. If the database does not answer, the hold stays until the next Settle, or the end
// of the lease.
func (s *Store) Settle() {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.keeps == 0 {
		_ = s.release()
	}
}

// Close implements content.Store.
func (s *Store) Close() error {
	s.hold.Lock()
	defer s.hold.Unlock()
	return s.release()
}

// release ends the hold. The caller holds s.hold.
func (s *Store) release() error {
	clear(s.known)
	if !s.stale {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.in.db.Exec(ctx, `DELETE FROM roost.held WHERE lease = $1 AND holder = $2`, s.lease, s.holder)
	s.stale = err != nil
	return err
}
