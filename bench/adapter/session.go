package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

var (
	errNoStore  = errors.New("no store is open: send init first")
	errNoRewind = errors.New("rewind: the store cannot take messages back yet")
)

// session is an open store and the tasks it owns.
type session struct {
	root  string
	store *store.Store
	owned map[string]*store.Task
}

func (s *session) do(ctx context.Context, r request) (answer, error) {
	if s.store == nil && r.Op != "init" && r.Op != "close" {
		return answer{}, errNoStore
	}
	switch r.Op {
	case "init":
		return s.init(ctx, r)
	case "import":
		return answer{}, s.load(ctx, r)
	case "add":
		return answer{}, s.add(ctx, r)
	case "open":
		return s.open(ctx, r.Task)
	case "rewind":
		return answer{}, errNoRewind
	case "track":
		return answer{}, s.commit(ctx, r.Task, task.FileChanged{Path: r.Path, Source: r.Source})
	case "list", "rebuild":
		return s.list(ctx)
	case "flush", "close":
		return answer{}, s.release(ctx)
	}
	return answer{}, fmt.Errorf("%q: not an operation of the protocol", r.Op)
}

func (s *session) init(ctx context.Context, r request) (answer, error) {
	if err := s.release(ctx); err != nil {
		return answer{}, err
	}
	opened, err := store.Open(store.Options{Root: r.Dir, State: r.Dir + ".state", Program: "adapter"})
	if err != nil {
		return answer{}, err
	}
	s.root, s.store, s.owned = r.Dir, opened, map[string]*store.Task{}
	return s.list(ctx)
}

func (s *session) list(ctx context.Context) (answer, error) {
	found, err := s.store.List(ctx, store.Filter{})
	if err != nil {
		return answer{}, err
	}
	n := len(found.Items)
	return answer{N: &n}, nil
}

// load makes a task from two files: they become a folder as Roo has it, and the
// store adopts it, which copies and syncs both.
func (s *session) load(ctx context.Context, r request) error {
	if !api.ValidTaskID(r.Task) {
		return fmt.Errorf("import: %q is not a task id", r.Task)
	}
	dir := filepath.Join(s.root, "tasks", r.Task)
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("import: task %s exists already", r.Task)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	for name, from := range map[string]json.RawMessage{roofmt.UIName: r.UI, roofmt.APIName: r.API} {
		var path string
		if err := json.Unmarshal(from, &path); err != nil {
			return fmt.Errorf("import: the name of a file: %w", err)
		}
		if err := copyFile(path, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	_, err := s.own(ctx, r.Task)
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// add appends one message to one history, or one to each in a single step.
func (s *session) add(ctx context.Context, r request) error {
	t, err := s.own(ctx, r.Task)
	if err != nil {
		return err
	}
	next := t.State().NextMessage()
	var events []task.Event
	for _, m := range []struct {
		history task.History
		raw     json.RawMessage
	}{{task.UI, r.UI}, {task.API, r.API}} {
		if len(m.raw) == 0 {
			continue
		}
		events = append(events, task.MessageAdded{History: m.history, Message: next, Body: task.Body{Raw: m.raw}})
		next++
	}
	if len(events) == 0 {
		return errors.New("add: neither ui nor api was given")
	}
	return s.commit(ctx, r.Task, events...)
}

// commit returns when the events are synced.
func (s *session) commit(ctx context.Context, id string, events ...task.Event) error {
	t, err := s.own(ctx, id)
	if err != nil {
		return err
	}
	if err := t.Commit(ctx, events...); err != nil {
		return err
	}
	return t.Barrier(ctx)
}

// open reads both histories from disk, like a reader that owns nothing.
func (s *session) open(ctx context.Context, id string) (answer, error) {
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return answer{}, err
	}
	v, err := s.store.Read(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	ui, api := len(v.State.UI()), len(v.State.API())
	return answer{UI: &ui, API: &api}, v.Close()
}

// own takes a task over once and keeps it until flush, close or init.
func (s *session) own(ctx context.Context, id string) (*store.Task, error) {
	if t := s.owned[id]; t != nil {
		return t, nil
	}
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := s.store.Own(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.owned[id] = o.Task
	return o.Task, nil
}

// release writes what is derived and lets every task go.
func (s *session) release(ctx context.Context) error {
	var errs []error
	for id, t := range s.owned {
		errs = append(errs, t.Close(ctx))
		delete(s.owned, id)
	}
	return errors.Join(errs...)
}
