package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
)

// Synced reports that commits of a journal are durable.
type Synced struct {
	Journal string
	Epoch   uint64 // of its owner
	From    uint64 // From to To were not announced by this owner before; none when From is greater than To
	To      uint64
	Last    bool // the owner releases the journal
}

// Announce selects when the commits of an owner are announced; see Journals.AnnounceTo.
type Announce int

// When commits are announced.
const (
	AnnounceSoon  Announce = iota // with others of this process, within notifyEvery
	AnnounceAtEnd                 // when the owner releases the journal
	AnnounceNever
)

// anyJournal stands, in the hub, for the followers of announcements. No journal has this number.
const anyJournal = 0

// How long announcing may take, and how long it pauses after a failure.
const (
	announceTime  = 2 * time.Second
	announcePause = time.Second
)

// announcements holds commits of this process's owners that were not announced yet. The hub's mu guards it.
type announcements struct {
	announce func(context.Context, []Synced) error // nil: there is no announcer
	order    []int64                               // the journals in waiting, in order
	waiting  map[int64]Synced
	round    chan struct{} // closed when all that waited was announced, or could not be
	pausing  time.Time     // no announcement is tried before this time
	stopped  bool
}

// AnnounceTo makes the hub call announce with the commits of this process's owners: those of the last moments
// together, one entry for each journal; no commit waits for it. When announce returns an error, it is called again
// with the same entries and newer ones. Call AnnounceTo before journals are owned.
func (j *Journals) AnnounceTo(announce func(context.Context, []Synced) error) {
	j.hub.mu.Lock()
	defer j.hub.mu.Unlock()
	j.hub.pending.announce = announce
}

// Announced wakes the followers of announcements on all servers.
func (j *Journals) Announced() { j.hub.announced() }

// FollowAnnouncements returns a channel that gets a value when a server has announced something, and the time after
// which to look even without a value. cancel must be called.
func (j *Journals) FollowAnnouncements() (wake <-chan struct{}, poll time.Duration, cancel func()) {
	wake, cancel = j.hub.followers.Subscribe(anyJournal)
	return wake, pollListening, cancel
}

// DB returns the database of the journals.
func (j *Journals) DB() *database.DB { return j.db }

func (h *hub) announced() {
	h.mu.Lock()
	h.dirty[anyJournal] = struct{}{}
	h.mu.Unlock()
	h.followers.Wake(anyJournal)
	h.sendSoon()
}

// add adds the commits of an owner to the waiting announcements. The caller holds the hub's mu.
func (a *announcements) add(id int64, s Synced) {
	if a.announce == nil {
		return
	}
	before, ok := a.waiting[id]
	switch {
	case !ok:
		a.order = append(a.order, id)
	case before.Epoch > s.Epoch:
		return // a later owner announces what this one left
	case before.Epoch == s.Epoch:
		s.From = min(s.From, before.From)
		s.To = max(s.To, before.To)
		s.Last = s.Last || before.Last
	}
	a.waiting[id] = s
}

// take removes and returns all waiting announcements. The caller must close done.
func (a *announcements) take() (order []int64, list []Synced, done chan struct{}) {
	order, done = a.order, a.round
	list = api.Each(order, func(id int64) Synced { return a.waiting[id] })
	clear(a.waiting)
	a.order, a.round = nil, make(chan struct{})
	return order, list, done
}

// announceAll announces all that waits.
func (h *hub) announceAll(ctx context.Context) {
	h.mu.Lock()
	if len(h.pending.order) == 0 || time.Now().Before(h.pending.pausing) {
		h.mu.Unlock()
		return
	}
	announce := h.pending.announce
	order, list, done := h.pending.take()
	h.mu.Unlock()
	defer close(done)
	limited, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	err := announce(limited, list)
	if err == nil {
		h.announced()
		return
	}
	if ctx.Err() == nil {
		h.warn(fmt.Errorf("announce new commits (followers of all tasks get them later): %w", err))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending.pausing = time.Now().Add(announcePause)
	for i, id := range order {
		h.pending.add(id, list[i])
	}
}

// announceLast announces all that waits when the hub ends, and nothing after that.
func (h *hub) announceLast(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTime)
	defer cancel()
	h.mu.Lock()
	h.pending.pausing = time.Time{}
	h.mu.Unlock()
	h.announceAll(limited)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending.stopped = true
	close(h.pending.round)
}

// ended announces the last commits of an owner, and waits for that for a moment: a process that is killed after the owner
// released the journal would leave nothing that shows that its commits were not announced.
func (h *hub) ended(id int64, s Synced) {
	h.mu.Lock()
	if h.pending.announce == nil || h.pending.stopped {
		h.mu.Unlock()
		return
	}
	h.pending.add(id, s)
	done := h.pending.round
	h.mu.Unlock()
	h.sendSoon()
	limit := time.NewTimer(announceTime)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}

// announces returns what to announce after commits up to head; nil: nothing, or nothing yet. The Writer calls it, and
// after that has ended, Close does.
func (o *owner) announces(head uint64, last bool) *Synced {
	if o.opt.Announce == AnnounceNever || o.opt.Announce == AnnounceAtEnd && !last {
		return nil
	}
	s := &Synced{
		Journal: o.name,
		Epoch:   o.Epoch(),
		From:    o.announced + 1,
		To:      head,
		Last:    last,
	}
	o.announced = head
	return s
}
