package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/store"
)

// A change waits for another one of its task that is being made, of no other task, and not
// for itself.
func TestChangesOfOneTaskWaitForEachOther(t *testing.T) {
	b := changeGate{all: map[string]*changing{}}
	one := b.enter("roost:a")
	if b.others("roost:a") != nil {
		t.Error("it would wait for itself")
	}
	two, elsewhere := b.enter("roost:a"), b.enter("roost:b")
	other := b.others("roost:a")
	if other == nil || b.others("roost:b") != nil {
		t.Fatal("who is beside whom is not known")
	}
	elsewhere()
	select {
	case <-other:
		t.Error("the end of another task's change counted")
	default:
	}
	two()
	<-other
	if b.others("roost:a") != nil {
		t.Error("it would wait for one that has ended")
	}
	if one(); len(b.all) != 0 {
		t.Errorf("%d tasks are kept", len(b.all))
	}
}

// What goes wrong below has its own status and code, and says whether it is worth asking
// again; what nobody foresaw is internal, and its words stay in the log.
func TestEveryFailureHasItsCode(t *testing.T) {
	g := newBench(t)
	dir := filepath.Join(t.TempDir(), "log")
	log := fixture.Must[journal.Owner](t)(filelog.Own(t.Context(), dir, filelog.Options{}))
	here, held := filelog.Holder(dir)
	if err := log.Close(); err != nil || !held {
		t.Fatal(held, err)
	}
	for _, c := range []struct {
		err    error
		status int
		code   string
		again  bool
	}{
		{engine.ErrRunning, 409, "task_busy", true},
		{&journal.BusyError{Holder: here}, 409, "task_busy", true},
		{&journal.BusyError{Holder: journal.OwnerInfo{PID: os.Getpid(), Boot: "of another machine"}}, 409, "task_locked", true},
		{&journal.BusyError{Holder: journal.OwnerInfo{PID: 1, Program: "roost 1"}}, 409, "task_locked", true},
		{&journal.BusyError{}, 409, "task_locked", true},
		{journal.ErrFenced, 409, "task_locked", true},
		{&engine.AnsweredError{Question: "q", Task: "t"}, 409, "question_answered", false},
		{engine.ErrStale, 409, "question_stale", false},
		{engine.ErrNoQuestion, 404, "question_not_found", false},
		{engine.ErrNoRun, 404, "run_not_found", false},
		{engine.ErrInput, 404, "input_not_found", false},
		{engine.ErrQueueFull, 503, "queue_full", true},
		{engine.ErrDraining, 503, "draining", true},
		{engine.ErrClosed, 503, "draining", true},
		{&mode.UnknownError{}, 422, "unknown_mode", false},
		{&setup.UnknownProfileError{}, 422, "unknown_profile", false},
		{&setup.Error{}, 422, "configuration", false},
		{labels.ErrInvalid, 422, "validation_failed", false},
		{trash.ErrTaken, 409, "id_taken", false},
		{store.ErrLinked, 403, "path_denied", false},
		{store.ErrMoved, 412, "etag_mismatch", false},
		{&llm.Error{}, 502, "provider_error", false},
		{syscall.ENOSPC, 507, "disk_full", true},
		{journal.ErrNotSaved, 503, "store_unavailable", true},
		{journal.ErrUntrustedLocks, 503, "store_unavailable", false},
		{&store.RootError{Check: "cannot be written"}, 503, "store_unavailable", false},
		{os.ErrPermission, 403, "permission_denied", false},
		{errors.New("/home/somebody/secret"), 500, "internal", false},
	} {
		p := report.ProblemOf(t.Context(), g.opt.Store, fmt.Errorf("do it: %w", c.err), g.id)
		if p.Status != c.status || p.Code != c.code || p.Retryable != c.again || p.Title == "" || p.Detail == "" {
			t.Errorf(`%v: got %+v, want p.Status = c.status and p.Code = c.code and p.Retryable = c.again and p.Title != "" and p.Detail != ""`,
				c.err, p)
		}
		if p.Status == http.StatusInternalServerError && p.Detail == c.err.Error() {
			t.Error("its words are told")
		}
	}
}

// The user of this process reads why the disk refused and what to do; a caller from elsewhere reads no path of it.
func TestThisProcessIsToldWhatTheDiskRefused(t *testing.T) {
	g := newBench(t)
	for _, c := range []struct {
		err                       error
		title, suggestion, secret string
	}{
		{fmt.Errorf("%w: make the folder /x writable", journal.ErrNotSaved), "The disk refused the write", "roost --root DIR ...  # or make this one writable", "/x"},
		{syscall.EROFS, "The disk refused the write", "roost --root DIR ...  # or make this one writable", "read-only"},
		{&store.RootError{Path: "/x", Check: "cannot be written", Err: syscall.EACCES}, "The root cannot be used", "roost --root DIR ...", "denied"},
		{&fs.PathError{Op: "rename", Path: "/x", Err: syscall.EIO}, "rename /x", "ls -ld /x  # what it is, and who may use it", "/x"},
	} {
		for _, peer := range []string{client.LocalPeer, "192.0.2.1:1"} {
			r := httptest.NewRequest(http.MethodPost, "/v1/tasks", nil)
			r.RemoteAddr = peer
			p := g.srv.problemFor(&asked{Request: r}, c.err)
			local := peer == client.LocalPeer
			if strings.Contains(p.Detail, c.secret) != local || local && (p.Title != c.title || !slices.Contains(p.Suggestions, c.suggestion)) {
				t.Errorf("%v, for %s: got %s: %s %q, want %s, %q", c.err, peer, p.Title, p.Detail, p.Suggestions, c.title, c.suggestion)
			}
		}
	}
}
