package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/database"
)

const (
	channel        = "roost_commits"       // of LISTEN and NOTIFY
	notifyEvery    = 20 * time.Millisecond // how long commits wait for others to be notified with
	pollListening  = time.Second           // between two queries while notifications arrive
	pollDeaf       = 50 * time.Millisecond // between two queries while none arrive
	reconnectPause = 500 * time.Millisecond
	maxPayload     = 7900 // bytes; PostgreSQL takes up to 8,000
)

// hub wakes the followers of this process when their journal has new commits, and announces the commits of this
// process.
type hub struct {
	pool      *database.DB
	warn      func(error)
	server    string        // names this hub in its notifications: it does not need its own
	silence   time.Duration // after which a listener connects again
	listening atomic.Bool

	mu       sync.Mutex
	journals map[int64]*followed
	dirty    map[int64]struct{} // journals whose commits other servers do not know of yet
	pending  announcements
	sendNow  chan struct{}
}

// followed is a journal with followers in this process.
type followed struct {
	wake map[chan struct{}]struct{}
	head int64 // the newest commit at the last poll
}

func newHub(pool *database.DB, warn func(error)) *hub {
	return &hub{
		pool:     pool,
		warn:     warn,
		server:   uuid.NewString(),
		silence:  time.Minute,
		journals: map[int64]*followed{},
		dirty:    map[int64]struct{}{},
		pending:  announcements{waiting: map[int64]Synced{}, round: make(chan struct{})},
		sendNow:  make(chan struct{}, 1),
	}
}

// subscribe returns a channel that gets a value after commits of the journal. cancel must be called.
func (h *hub) subscribe(id int64) (wake <-chan struct{}, cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	f := h.journals[id]
	if f == nil {
		f = &followed{wake: map[chan struct{}]struct{}{}}
		h.journals[id] = f
	}
	f.wake[c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if delete(f.wake, c); len(f.wake) == 0 {
			delete(h.journals, id)
		}
	}
}

// committed wakes the followers of the journal here, and makes send notify those on other servers. An announcement
// waits for send, too.
func (h *hub) committed(id int64, announce *Synced) {
	h.mu.Lock()
	h.dirty[id] = struct{}{}
	if announce != nil {
		h.pending.add(id, *announce)
	}
	h.journals[id].notify()
	h.mu.Unlock()
	h.sendSoon()
}

func (h *hub) sendSoon() {
	select {
	case h.sendNow <- struct{}{}:
	default:
	}
}

func (f *followed) notify() {
	if f == nil {
		return
	}
	for c := range f.wake {
		select {
		case c <- struct{}{}:
		default: // it is to wake already
		}
	}
}

// send announces what was committed here, and notifies the other servers of it, at most every notifyEvery.
func (h *hub) send(ctx context.Context) {
	defer h.announceLast(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.sendNow:
		}
		h.announceAll(ctx)
		for _, payload := range h.payloads() {
			// A notification that a crash loses is found by polling: it need not be synced, nor wait for a standby.
			if _, err := h.pool.Exec(ctx, `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`, channel, payload); err != nil && ctx.Err() == nil {
				h.warn(fmt.Errorf("notify other servers of new commits (they find them by polling): %w", err))
				break
			}
		}
		pause(ctx, notifyEvery)
	}
}

// payloads removes the journals of which other servers do not know yet, and returns them as payloads of
// notifications: this server's name, and numbers of journals.
func (h *hub) payloads() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := []byte(h.server)
	for id := range h.dirty {
		if text = strconv.AppendInt(append(text, ' '), id, 36); len(text) > maxPayload {
			list, text = append(list, string(text)), []byte(h.server)
		}
	}
	clear(h.dirty)
	if len(text) > len(h.server) {
		list = append(list, string(text))
	}
	return list
}

// listen receives the notifications of other servers, on a connection of its own. It reports what hinders it once, until it
// has listened again.
func (h *hub) listen(ctx context.Context) {
	for said := false; ctx.Err() == nil; pause(ctx, reconnectPause) {
		err := h.receive(ctx)
		if listened := h.listening.Swap(false); err != nil && ctx.Err() == nil && (listened || !said) {
			h.warn(fmt.Errorf("listen for commits of other servers (until that works they are found by polling): %w", err))
		}
		said = err != nil
	}
}

// receive returns nil when nothing came for long.
func (h *hub) receive(ctx context.Context) error {
	from, err := h.pool.Listen(ctx, channel)
	if err != nil {
		return err
	}
	defer from.Close(ctx)
	// A pooler in transaction mode takes LISTEN and delivers nothing: a word to ourselves shows it.
	word := h.server + " ?"
	if _, err := h.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, word); err != nil {
		return err
	}
	for limit := 5 * time.Second; ; {
		wait, cancel := context.WithTimeout(ctx, limit)
		payload, err := from.Next(wait)
		cancel()
		switch {
		case err == nil && payload == word:
			limit = h.silence
			h.listening.Store(true)
			h.wakeAll() // what was committed before the connection listened
		case err == nil:
			h.notified(payload)
		case h.listening.Load() && errors.Is(err, context.DeadlineExceeded):
			return nil // listen connects again: a network that dropped the connection silently shows nothing else
		case errors.Is(err, context.DeadlineExceeded):
			return errors.New("no notification comes, as behind a pooler in transaction mode")
		default:
			return err
		}
	}
}

// notified wakes the followers of the journals in a payload.
func (h *hub) notified(payload string) {
	server, list, _ := strings.Cut(payload, " ")
	if server == h.server {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for text := range strings.SplitSeq(list, " ") {
		if id, err := strconv.ParseInt(text, 36, 64); err == nil {
			h.journals[id].notify()
		}
	}
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.journals {
		f.notify()
	}
}

// poll asks for the heads of all followed journals in one query.
func (h *hub) poll(ctx context.Context) {
	for ctx.Err() == nil {
		wait := pollDeaf
		if h.listening.Load() {
			wait = pollListening
		}
		pause(ctx, wait)
		if wait == pollDeaf {
			h.notified(" 0") // anyJournal: a server may have announced something
		}
		h.sendSoon() // what could not be announced
		if ids := h.ids(); len(ids) > 0 {
			h.look(ctx, ids)
		}
	}
}

func (h *hub) ids() (list []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.journals {
		list = append(list, id)
	}
	return list
}

// look wakes the followers of the journals whose head has moved since the last poll. Without an answer of the
// database it wakes none: the next poll finds the change.
func (h *hub) look(ctx context.Context, ids []int64) {
	rows := h.pool.Query(ctx, `SELECT id, head FROM roost.journals WHERE id = ANY($1)`, ids)
	var id, head int64
	_ = rows.Each([]any{&id, &head}, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f := h.journals[id]; f != nil && f.head != head {
			f.head = head
			f.notify()
		}
		return nil
	})
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
