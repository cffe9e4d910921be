package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

// OwnOptions are settings of one owner. The zero value is usable.
type OwnOptions struct {
	Address string       // the address for input to the owner; shown to others who find the journal owned
	By      string       // the program that opens: the By of epoch.opened
	Clock   func() int64 // Unix milliseconds for epoch.opened; default the system's

	Announce Announce // when its commits are announced

	// Existing refuses a journal that does not exist instead of making it.
	Existing bool
	// FlushAfter bounds how long Append buffers. Default 200 ms.
	FlushAfter time.Duration
	// MaxUnsaved bounds the bytes in memory that are not committed. Default 64 MB.
	MaxUnsaved int
	// Seal signs new commits, and verifies the existing ones: see journal.Prover. nil = neither.
	Seal *journal.Seal
	// Meets runs with the lease held, before anything is written. If it returns an error, Own fails with it and
	// leaves the commits as they are. head is the newest commit, 0 = there is none.
	Meets func(head uint64) error
}

// owner is the journal.Owner of one journal.
type owner struct {
	*reader
	opt   OwnOptions
	epoch uint64

	mu        sync.Mutex
	chain     *journal.Chain
	proof     journal.Proof
	queue     []line // not known to be committed, oldest first
	bytes     int    // in queue
	since     time.Time
	next      uint64
	synced    uint64
	waiters   journal.Waiters
	until     time.Time // the lease lasts at least until then
	trouble   error     // why saving fails at present
	fatal     error     // fenced or closed
	retryAt   time.Time
	backoff   time.Duration
	room      chan struct{} // closed when memory becomes free
	announced uint64        // for the flusher alone: the announcer got the commits up to this one

	unsure bool // for the flusher alone: a statement got no answer, and may still run
	wake   chan struct{}
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
	end    error
}

var (
	_ journal.Owner  = (*owner)(nil)
	_ journal.Prover = (*owner)(nil)
	_ Holder         = (*owner)(nil)
)

// Own takes the lease of the journal called name, which it creates the first time, and commits epoch.opened. The error
// is a *journal.BusyError while another owner's lease lasts.
func (j *Journals) Own(ctx context.Context, name string, opt OwnOptions) (_ journal.Owner, err error) {
	if opt.Clock == nil {
		opt.Clock = func() int64 { return time.Now().UnixMilli() }
	}
	opt.FlushAfter = cmp.Or(opt.FlushAfter, 200*time.Millisecond)
	opt.MaxUnsaved = cmp.Or(opt.MaxUnsaved, 64<<20)
	o := &owner{
		reader: &reader{in: j, name: name, seal: opt.Seal, closed: make(chan struct{})},
		opt:    opt,
		room:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	if err := o.take(ctx); err != nil {
		return nil, fmt.Errorf("own journal %s: %w", name, err)
	}
	j.leases.add(o.lease())
	defer func() {
		if err != nil {
			o.release()
		}
	}()
	if err := o.verify(ctx); err != nil {
		return nil, fmt.Errorf("own journal %s: %w", name, err)
	}
	if opt.Meets != nil {
		if err := opt.Meets(o.synced); err != nil {
			return nil, fmt.Errorf("own journal %s: %w", name, err)
		}
	}
	opened, err := j.opt.Owner.Opened()
	if err != nil {
		return nil, fmt.Errorf("own journal %s: %w", name, err)
	}
	if _, err := o.put(journal.Draft{At: opt.Clock(), By: opt.By, Events: []journal.Event{opened}}); err != nil {
		return nil, err
	}
	if err := o.flush(); err != nil {
		return nil, err
	}
	go o.run() //nolint:gosec // it lives until Close, not until ctx ends
	return o, nil
}

// take takes the lease if it is free, with an epoch of its own.
func (o *owner) take(ctx context.Context) error {
	info := o.in.opt.Owner
	info.Address = o.opt.Address
	shown, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if !o.opt.Existing {
		if _, err := o.in.db.Exec(ctx, `INSERT INTO roost.journals (name) VALUES ($1) ON CONFLICT DO NOTHING`, o.name); err != nil {
			return database.Explained(err)
		}
	}
	for {
		asked := time.Now()
		var epoch, head int64
		var seqs, epochs []int64
		taken, err := database.Found(o.in.db.QueryRow(ctx, `
UPDATE roost.journals SET epoch = epoch + 1, owner = $2, lease_until = clock_timestamp() + $3::interval
WHERE name = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp())
RETURNING id, epoch, head, base_seqs, base_epochs`, o.name, shown, o.in.opt.Lease), &o.id, &epoch, &head, &seqs, &epochs)
		if err != nil {
			return database.Explained(err)
		}
		if taken {
			o.epoch, o.synced, o.announced, o.next = uint64(epoch), uint64(head), uint64(head), uint64(head)+1
			o.until = asked.Add(o.in.opt.Lease)
			return o.begins(seqs, epochs)
		}
		var holder []byte
		var held bool
		there, err := database.Found(o.in.db.QueryRow(ctx, `
SELECT owner, coalesce(lease_until >= clock_timestamp(), false) FROM roost.journals WHERE name = $1`, o.name), &holder, &held)
		if err != nil {
			return err
		}
		if !there {
			return journal.ErrNotFound
		}
		if held { // else its lease ended since
			busy := &journal.BusyError{Dir: o.name}
			_ = json.Unmarshal(holder, &busy.Holder) // without it the owner has no name
			return busy
		}
	}
}

// verify brings the chain of signatures to the head.
func (o *owner) verify(ctx context.Context) error {
	if o.seal == nil {
		return nil
	}
	chain, err := o.proven(ctx, o.synced)
	if err != nil {
		return err
	}
	o.chain, o.proof = chain, chain.Proof
	return nil
}

// Proof implements journal.Prover.
func (o *owner) Proof(context.Context) (journal.Proof, error) { return o.proof, nil }

// Epoch implements journal.Owner.
func (o *owner) Epoch() uint64 { return o.epoch }

// Head implements journal.Reader without asking the database.
func (o *owner) Head(ctx context.Context) (uint64, error) {
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.synced, nil
}

// Close implements journal.Owner. It tries once more to save unsaved commits.
func (o *owner) Close() error {
	o.once.Do(func() {
		close(o.quit)
		<-o.done
		o.mu.Lock()
		switch {
		case o.fatal != nil:
			o.end = o.fatal
		case len(o.queue) > 0:
			o.end = o.trouble
		}
		o.fatal = fmt.Errorf("journal %s: %w", o.name, journal.ErrClosed)
		o.waiters.Answer(o.next, o.fatal)
		o.changed()
		synced := o.synced
		o.mu.Unlock()
		if s := o.announces(synced, true); s != nil && !errors.Is(o.end, journal.ErrFenced) {
			o.in.hub.ended(o.id, *s)
		}
		o.release()
		o.end = cmp.Or(o.end, o.reader.Close())
	})
	return o.end
}

func (o *owner) lease() lease { return lease{o.id, int64(o.epoch), o} }

// release gives the lease back. If the database does not answer, the lease runs out by itself.
func (o *owner) release() {
	o.in.leases.remove(o.lease())
	ctx, cancel := context.WithTimeout(context.Background(), o.in.opt.Lease)
	defer cancel()
	_, _ = o.in.db.Exec(ctx, `UPDATE roost.journals SET owner = NULL, lease_until = NULL WHERE id = $1 AND epoch = $2`, o.id, int64(o.epoch))
}

// Holder is an owner whose ownership is a lease.
type Holder interface {
	// Held returns nil when the lease lasts for at least margin more. It renews the lease if it must. The error wraps
	// journal.ErrFenced when another owner has taken the journal, else journal.ErrNotSaved. Call it right before work
	// that two owners must not both do; work that lasts longer than margin can still overlap with the next owner.
	Held(ctx context.Context, margin time.Duration) error
}

// leased records the time until which the lease certainly lasts. It counts from before the request, on this machine's
// monotonic clock, and the database counted from a later moment.
func (o *owner) leased(until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if until.After(o.until) {
		o.until = until
	}
}

// Held implements Holder.
func (o *owner) Held(ctx context.Context, margin time.Duration) error {
	lasts := func() (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return time.Until(o.until) > margin, o.fatal
	}
	if ok, err := lasts(); ok || err != nil {
		return err
	}
	if err := o.in.leases.renew(ctx, []lease{o.lease()}, waitForLocked); err != nil {
		return unsaved("renew the lease", o.name, err)
	}
	if ok, err := lasts(); ok || err != nil {
		return err
	}
	return unsaved("renew the lease", o.name, fmt.Errorf("the lease lasts less than %v", margin))
}

// fence ends the owner, because another owner has a later epoch.
func (o *owner) fence() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fatal == nil {
		o.fatal = fmt.Errorf("journal %s: %w", o.name, journal.ErrFenced)
		o.waiters.Answer(o.next, o.fatal)
		o.changed()
	}
}
