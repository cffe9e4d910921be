package store

import (
	"cmp"
	"os"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// ReachedAt sets the address at which other processes reach this one. The store calls f each time that it owns a task,
// and writes the address into the task's lock file: a process that wants something of the task finds it there. "" is no
// address. Call ReachedAt before the store is used.
func (s *Store) ReachedAt(f func() string) { s.reached = f }

// Holder reports whether a process owns a task, and its record in the lock file. It takes no lock that the process would
// notice, and creates nothing.
func (s *Store) Holder(ref Ref) (journal.OwnerInfo, bool) { return filelog.Holder(ref.Log) }

// owner is this process's record for lock files.
func (s *Store) owner() journal.OwnerInfo {
	o := journal.OwnerInfo{PID: os.Getpid(), Program: cmp.Or(s.opt.Program, "roost")}
	if s.reached != nil {
		o.Address = s.reached()
		s.address.Store(&o.Address)
	}
	return o
}

// Address is this process's address in lock files; "" while no lock file has one.
func (s *Store) Address() string {
	if at := s.address.Load(); at != nil {
		return *at
	}
	return ""
}
