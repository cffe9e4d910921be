// Package keyed is a mutex per key, for keys that are not known in advance: for example, it serializes the calls that
// change one task. A key costs memory only while it is locked or awaited. The order in which waiters get a key is
// undefined.
package keyed

import (
	"context"
	"sync"
)

// Mutex is one lock for each key. The zero value is ready. It must not be copied after its first use.
type Mutex[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*lock
}

type lock struct {
	held  chan struct{} // holds one element while the key is locked
	users int           // number of callers that hold the key or wait for it; under mu of the Mutex
}

// Lock waits until the key is free or the context ends. The returned function releases the key; calling it again does
// nothing.
func (m *Mutex[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	one := m.use(key)
	select {
	case one.held <- struct{}{}:
	default:
		select {
		case one.held <- struct{}{}:
		case <-ctx.Done():
			m.drop(key, one)
			return nil, context.Cause(ctx)
		}
	}
	return sync.OnceFunc(func() {
		<-one.held
		m.drop(key, one)
	}), nil
}

func (m *Mutex[K]) use(key K) *lock {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.locks[key]
	if one == nil {
		if m.locks == nil {
			m.locks = map[K]*lock{}
		}
		one = &lock{held: make(chan struct{}, 1)}
		m.locks[key] = one
	}
	one.users++
	return one
}

func (m *Mutex[K]) drop(key K, one *lock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(m.locks, key)
	}
}
