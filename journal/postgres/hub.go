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
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
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

	followers journal.Followers[int64]

	mu      sync.Mutex
	dirty   map[int64]struct{} // journals whose commits other servers do not know of yet
	pending announcements
	sendNow chan struct{}
}

func newHub(pool *database.DB, warn func(error)) *hub {
	return &hub{
		pool:    pool,
		warn:    warn,
		server:  uuid.NewString(),
		silence: time.Minute,
		dirty:   map[int64]struct{}{},
		pending: announcements{waiting: map[int64]Synced{}, round: make(chan struct{})},
		sendNow: make(chan struct{}, 1),
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
	h.mu.Unlock()
	h.followers.Wake(id)
	h.sendSoon()
}

func (h *hub) sendSoon() {
	select {
	case h.sendNow <- struct{}{}:
	default:
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
		sleep.For(ctx, notifyEvery)
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
	for said := false; ctx.Err() == nil; sleep.For(ctx, reconnectPause) {
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
			h.followers.Wake(h.followers.Logs()...) // what was committed before the connection listened
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
	for text := range strings.SplitSeq(list, " ") {
		if id, err := strconv.ParseInt(text, 36, 64); err == nil {
			h.followers.Wake(id)
		}
	}
}

// poll asks for the heads of all followed journals in one query.
func (h *hub) poll(ctx context.Context) {
	heads := map[int64]int64{}
	for ctx.Err() == nil {
		wait := pollDeaf
		if h.listening.Load() {
			wait = pollListening
		}
		sleep.For(ctx, wait)
		if wait == pollDeaf {
			h.followers.Wake(anyJournal) // a server may have announced something
		}
		h.sendSoon() // what could not be announced
		if ids := h.followers.Logs(); len(ids) > 0 {
			heads = h.look(ctx, ids, heads)
		}
	}
}

// look wakes the followers of the journals whose head is not the one in before, and returns the heads. Without an answer
// of the database it wakes none: the next poll finds the change.
func (h *hub) look(ctx context.Context, ids []int64, before map[int64]int64) map[int64]int64 {
	rows := h.pool.Query(ctx, `SELECT id, head FROM roost.journals WHERE id = ANY($1)`, ids)
	now := map[int64]int64{}
	var id, head int64
	err := rows.Each([]any{&id, &head}, func() error {
		now[id] = head
		return nil
	})
	if err != nil {
		return before
	}
	for id, head := range now {
		if head != before[id] {
			h.followers.Wake(id)
		}
	}
	return now
}
