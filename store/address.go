package store

import (
	"cmp"
	"os"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// ReachedAt says how other processes reach this one: f is asked each time that a task is
// taken for long, and its answer stands in the task's lock file, for whoever wants
// something of a task that this process holds. "" is nowhere. It is set before the store
// is used.
func (s *Store) ReachedAt(f func() string) { s.reached = f }

// Holder reports whether a process works on a task, and what it says of itself. It takes
// no lock that the process would notice, and creates nothing.
func (s *Store) Holder(ref Ref) (journal.OwnerInfo, bool) { return filelog.Holder(ref.Log) }

// owner is what we say of ourselves in a lock file.
func (s *Store) owner() journal.OwnerInfo {
	o := journal.OwnerInfo{PID: os.Getpid(), Program: cmp.Or(s.opt.Program, "roost")}
	if s.reached != nil {
		o.Address = s.reached()
		s.said.Store(&o.Address)
	}
	return o
}

// Address is what lock files say of where this process is reached; "" as long as none does.
func (s *Store) Address() string {
	if at := s.said.Load(); at != nil {
		return *at
	}
	return ""
}
