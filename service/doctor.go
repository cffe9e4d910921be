package service

import (
	"context"

	"github.com/roost-dev/roost/agent/spool"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store/doctor"
)

// Checkup says what a check looks at besides the root, and what it may change. The zero value changes nothing.
type Checkup struct {
	Repair  bool // repair what can be repaired, and keep what is replaced
	Rebuild bool // make derived data again where it is missing, behind or wrong

	Folder string // in which exports may have left unfinished files; "" = none
	Temp   string // the folder of temporary files, in which killed runs left output; "" = the system's
}

// Check verifies tasks: their journals, Roo's files, and the contents of their checkpoints. Without ids it verifies all
// tasks, and what is kept for all of them.
func (s *Service) Check(ctx context.Context, ids []string, o Checkup) (api.Checkup, error) {
	found, err := doctor.Check(ctx, s.store, ids, doctor.Options{Repair: o.Repair, Rebuild: o.Rebuild, SpillDir: o.Folder})
	if err != nil {
		return found, err
	}
	e := s.engine
	if e == nil {
		e = engine.New(s.store, engine.Options{Now: func() int64 { return s.opt.Now().UnixMilli() }})
		defer func() { _ = e.Close(ctx) }() // no run began
	}
	kept, err := e.Checkpoints().Verify(ctx, ids, o.Repair)
	if err != nil {
		return found, err
	}
	bad := map[string]bool{}
	for _, f := range found.Damaged {
		bad[f.ID] = true
	}
	for _, f := range kept.Damaged {
		if !bad[f.ID] {
			bad[f.ID] = true
			found.OK--
		}
	}
	found.Damaged, found.Repaired = append(found.Damaged, kept.Damaged...), append(found.Repaired, kept.Repaired...)
	found.Contents, found.ContentBytes = kept.Objects, kept.Bytes
	if len(ids) == 0 {
		checkSpools(&found, o.Temp, o.Repair)
	}
	return found, nil
}

// checkSpools adds the folders for command output that killed runs left.
func checkSpools(r *api.Checkup, dir string, remove bool) {
	left := spool.Left(dir)
	if remove && len(left) > 0 {
		spool.Sweep(dir)
	}
	still := map[string]bool{}
	for _, path := range spool.Left(dir) {
		still[path] = true
	}
	for _, path := range left {
		f := api.Finding{
			Path:      path,
			File:      path,
			Problem:   "output of commands of a killed run",
			Recovered: "the task holds what was recorded of it",
		}
		if still[path] {
			r.Leftovers = append(r.Leftovers, f)
		} else {
			f.Recovered = "removed"
			r.Repaired = append(r.Repaired, f)
		}
	}
}

// Collect removes contents of checkpoints that no task needs any more. With dry it only reports what would go.
func (s *Service) Collect(ctx context.Context, dry bool) ([]api.CollectedStore, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	return s.engine.Checkpoints().Collect(ctx, dry)
}

// TrustRoot declares the root its user's own in this place: keys of other places count here, and tasks that hold
// something open, or settings of their own, go on with those. With dry it only reports which tasks would.
func (s *Service) TrustRoot(ctx context.Context, dry bool) (api.TrustedRoot, error) {
	return s.store.Trust(ctx, dry)
}

// Once reports whether something that is offered once for each root is to be offered now, and records it.
func (s *Service) Once(name string) bool { return s.store.Once(name) }
