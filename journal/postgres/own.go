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
	// Seal signs new commits, and verifies the existing ones: see journal.Prover. nil = neither.
	Seal *journal.Seal
	// Meets runs with the lease held, before anything is written. If it returns an error, Own fails with it and
	// leaves the commits as they are. head is the newest commit, 0 = there is none.
	Meets func(head uint64) error
}

// owner is the journal.Owner of one journal.
type owner struct {
	*reader
	*journal.Writer
	opt   OwnOptions
	proof journal.Proof

	mu    sync.Mutex
	until time.Time // guarded by mu: the lease lasts at least until then

	// Only what the Writer calls uses these, and Close after that.
	announced uint64 // the announcer got the commits up to this one
	unsure    bool   // a statement got no answer, and may still run

	once sync.Once
	end  error
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
	o := &owner{reader: &reader{in: j, name: name, seal: opt.Seal, closed: make(chan struct{})}, opt: opt}
	epoch, head, err := o.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("own journal %s: %w", name, err)
	}
	o.announced = head
	o.Writer = journal.NewWriter(journal.WriterOptions{
		Name:    name,
		Epoch:   epoch,
		Head:    head,
		Base:    journal.BaseOf(o.bases, head+1),
		Save:    o.save,
		Saved:   func(head uint64) { j.hub.committed(o.id, o.announces(head, false)) },
		Patient: true,
	})
	j.leases.add(o)
	defer func() {
		if err != nil {
			o.release()
		}
	}()
	var chain *journal.Chain
	if opt.Seal != nil {
		if chain, err = o.proven(ctx, head); err != nil {
			return nil, fmt.Errorf("own journal %s: %w", name, err)
		}
		o.proof = chain.Proof
	}
	if opt.Meets != nil {
		if err := opt.Meets(head); err != nil {
			return nil, fmt.Errorf("own journal %s: %w", name, err)
		}
	}
	opened, err := j.opt.Owner.Opened()
	if err != nil {
		return nil, fmt.Errorf("own journal %s: %w", name, err)
	}
	if err := o.Start(chain, journal.Draft{At: opt.Clock(), By: opt.By, Events: []journal.Event{opened}}); err != nil {
		return nil, err
	}
	return o, nil
}

// take takes the lease if it is free, with an epoch of its own.
func (o *owner) take(ctx context.Context) (epoch, head uint64, err error) {
	info := o.in.opt.Owner
	info.Address = o.opt.Address
	shown, err := json.Marshal(info)
	if err != nil {
		return 0, 0, err
	}
	if !o.opt.Existing {
		if _, err := o.in.db.Exec(ctx, `INSERT INTO roost.journals (name) VALUES ($1) ON CONFLICT DO NOTHING`, o.name); err != nil {
			return 0, 0, database.Explained(err)
		}
	}
	for {
		asked := time.Now()
		var seqs, epochs []int64
		taken, err := database.Found(o.in.db.QueryRow(ctx, `
UPDATE roost.journals SET epoch = epoch + 1, owner = $2, lease_until = clock_timestamp() + $3::interval
WHERE name = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp())
RETURNING id, epoch, head, base_seqs, base_epochs`, o.name, shown, o.in.opt.Lease), &o.id, &epoch, &head, &seqs, &epochs)
		if err != nil {
			return 0, 0, database.Explained(err)
		}
		if taken {
			o.until = asked.Add(o.in.opt.Lease)
			return epoch, head, o.begins(seqs, epochs)
		}
		var holder []byte
		var held bool
		there, err := database.Found(o.in.db.QueryRow(ctx, `
SELECT owner, coalesce(lease_until >= clock_timestamp(), false) FROM roost.journals WHERE name = $1`, o.name), &holder, &held)
		if err != nil {
			return 0, 0, err
		}
		if !there {
			return 0, 0, journal.ErrNotFound
		}
		if held { // else its lease ended since
			busy := &journal.BusyError{Dir: o.name}
			_ = json.Unmarshal(holder, &busy.Holder) // without it the owner has no name
			return 0, 0, busy
		}
	}
}

// Proof implements journal.Prover.
func (o *owner) Proof(context.Context) (journal.Proof, error) { return o.proof, nil }

// Head implements journal.Reader without asking the database.
func (o *owner) Head(ctx context.Context) (uint64, error) {
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	return o.Newest(), nil
}

// Close implements journal.Owner. It tries once more to save unsaved commits.
func (o *owner) Close() error {
	o.once.Do(func() {
		o.end = o.Stop()
		if s := o.announces(o.Newest(), true); s != nil && !errors.Is(o.end, journal.ErrFenced) {
			o.in.hub.ended(o.id, *s)
		}
		o.release()
		o.end = cmp.Or(o.end, o.reader.Close())
	})
	return o.end
}

// release gives the lease back. If the database does not answer, the lease runs out by itself.
func (o *owner) release() {
	o.in.leases.remove(o)
	ctx, cancel := context.WithTimeout(context.Background(), o.in.opt.Lease)
	defer cancel()
	_, _ = o.in.db.Exec(ctx, `UPDATE roost.journals SET owner = NULL, lease_until = NULL WHERE id = $1 AND epoch = $2`,
		o.id, int64(o.Epoch()))
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
		return time.Until(o.until) > margin, o.Usable(context.WithoutCancel(ctx))
	}
	if ok, err := lasts(); ok || err != nil {
		return err
	}
	if err := o.in.leases.renew(ctx, []*owner{o}, waitForLocked); err != nil {
		return unsaved("renew the lease", o.name, err)
	}
	if ok, err := lasts(); ok || err != nil {
		return err
	}
	return unsaved("renew the lease", o.name, fmt.Errorf("the lease lasts less than %v", margin))
}
