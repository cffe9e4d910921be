package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// patient is a store with the real waits, on a clock that runs when all sleep.
func patient(t *testing.T, s *Store) *Store {
	t.Helper()
	s.wait = intake.DefaultWaits
	time.Sleep(time.Millisecond) // the clock begins at a whole second, as times on a coarse file system do
	return s
}

// step is one more turn of an editor, after what continued left: the two files.
func step(n int) (ui, api string) {
	return with(fourRows, uiRow(10*n, "question shown"), uiRow(10*n+2, "reply")), with(threeAPI, apiRow(10*n+3, "assistant", "reply"))
}

// overwrite replaces a file's text in a moment that the clock of the test tells.
func overwrite(t testing.TB, dir, name, text string) {
	t.Helper()
	write(t, dir, name+".next", text)
	fixture.NoError(t, os.Rename(filepath.Join(dir, name+".next"), filepath.Join(dir, name)))
	now := time.Now()
	fixture.NoError(t, os.Chtimes(filepath.Join(dir, name), now, now))
}

// later does something after a while. The test ends behind it.
func later(t *testing.T, after time.Duration, do func()) {
	t.Helper()
	var doing sync.WaitGroup
	doing.Go(func() {
		time.Sleep(after)
		do()
	})
	t.Cleanup(doing.Wait)
}

func TestHalfAStepIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, _ := continued(t)
		patient(t, s)
		ui, api := step(1)
		overwrite(t, dir, roofmt.UIName, ui)
		later(t, 700*time.Millisecond, func() {
			overwrite(t, dir, roofmt.APIName, api)
		})
		begun := time.Now()
		o := own(t, s, "live-one")
		if took := time.Since(begun); took < 700*time.Millisecond || took > time.Second {
			t.Errorf("taken after %v", took)
		}
		if len(o.Task.Intakes()) != 2 || o.Task.Intakes()[0].Added != 2 || o.Task.Intakes()[1].Added != 1 {
			t.Errorf("got %+v, want len(o.Task.Intakes()) = 2 and o.Task.Intakes()[0].Added = 2 and o.Task.Intakes()[1].Added = 1",
				o.Task.Intakes())
		}
		closeTask(t, o.Task)
		if read(t, dir, roofmt.UIName) != ui || read(t, dir, roofmt.APIName) != api {
			t.Error("the editor's files changed")
		}
	})
}

// A file that was written a moment ago may be written again in the same tick of the clock,
// with as many bytes: it looks as it did then. Whoever had read it between would take it
// for what he read, and replace it: so it is read when the next change will show.
func TestWhatIsWrittenTwiceInATickIsReadAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		tick  time.Duration // of the file's times
		again time.Duration // when it is written again
	}{
		"a tick of the kernel":                 {time.Millisecond, 10 * time.Millisecond},
		"a file system that has whole seconds": {time.Second, 900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, dir, _ := continued(t)
				patient(t, s)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
				if c.tick < time.Second {
					time.Sleep(7 * time.Millisecond)
				}
				at := time.Now()
				_, api := step(1)
				first := with(fourRows, uiRow(10, "question one"), uiRow(12, "reply"))
				second := with(fourRows, uiRow(10, "question two"), uiRow(12, "reply"))
				inPlace := func(name, text string) {
					write(t, dir, name, text)
					fixture.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
				}
				inPlace(roofmt.UIName, first)
				inPlace(roofmt.APIName, api)
				later(t, c.again, func() {
					inPlace(roofmt.UIName, second)
				})
				o := own(t, s, "live-one")
				closeTask(t, o.Task)
				if got := rows(o.Task.State()); !strings.Contains(got, "question two") || read(t, dir, roofmt.UIName) != second {
					t.Errorf("what the editor wrote last is not in it: %s", got)
				}
			})
		})
	}
}

// A program that died between its two saves comes to no end of its step: what
// stands still is how it left the task.
func TestHalfAStepThatStaysIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, _ := continued(t)
		patient(t, s)
		ui, _ := step(1)
		overwrite(t, dir, roofmt.UIName, ui)
		begun := time.Now()
		o := own(t, s, "live-one")
		if took := time.Since(begun); took < s.wait.Settle || took > s.wait.Settle+time.Second {
			t.Errorf("taken after %v", took)
		}
		if len(o.Task.Intakes()) != 1 || o.Task.Intakes()[0].Added != 2 || o.Task.Intakes()[0].Refused != "" {
			t.Errorf("got %+v, want len(o.Task.Intakes()) = 1 and o.Task.Intakes()[0].Added = 2 and o.Task.Intakes()[0].Refused = \"\"",
				o.Task.Intakes())
		}
		closeTask(t, o.Task)

		// The next one finds old files and does not wait.
		begun = time.Now()
		closeTask(t, own(t, s, "live-one").Task)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("waited %v for files that are known", took)
		}
	})
}

func TestAWriterThatNeverRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, want := continued(t)
		patient(t, s)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := 1; ctx.Err() == nil; n++ {
				ui, _ := step(n)
				overwrite(t, dir, roofmt.UIName, ui)
				time.Sleep(500 * time.Millisecond)
			}
		}()
		ref := fixture.Must[Ref](t)(s.Find(ctx, "live-one"))
		synctest.Wait() // it has begun
		begun := time.Now()
		_, err := s.Own(ctx, ref)
		if took := time.Since(begun); !errors.Is(err, ErrForeignBusy) || took > 7*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		stop()
		<-done
		// Nobody owns it, and nothing was taken in.
		fixture.NoError(t, os.Remove(filepath.Join(dir, roofmt.UIName)))
		s.wait.Settle = 0
		o := own(t, s, "live-one")
		if rows(o.Task.State()) != want {
			t.Errorf("half a step was taken: %s", rows(o.Task.State()))
		}
		closeTask(t, o.Task)
	})
}

func TestAFileUnderALockIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, _ := continued(t)
		patient(t, s)
		ui, api := step(1)
		lock := filepath.Join(dir, roofmt.UIName+".lock")
		fixture.NoError(t, os.Mkdir(lock, 0o700))
		later(t, 700*time.Millisecond, func() {
			overwrite(t, dir, roofmt.UIName, ui)
			overwrite(t, dir, roofmt.APIName, api)
			fixture.NoError(t, os.Remove(lock))
		})
		o := own(t, s, "live-one")
		if len(o.Task.Intakes()) != 2 {
			t.Errorf("got %+v, want len(o.Task.Intakes()) = 2", o.Task.Intakes())
		}
		closeTask(t, o.Task)

		// A holder that stays is busy, not broken; and a caller may give up sooner.
		fixture.NoError(t, os.Mkdir(lock, 0o700))
		ref := fixture.Must[Ref](t)(s.Find(context.Background(), "live-one"))
		if _, err := s.Own(context.Background(), ref); !errors.Is(err, ErrForeignBusy) {
			t.Errorf("held: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		if _, err := s.Own(ctx, ref); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		fixture.NoError(t, os.Remove(lock))
	})
}

func TestAgreeingFilesAreTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, _ := continued(t)
		patient(t, s)
		ui, api := step(1)
		overwrite(t, dir, roofmt.UIName, ui)
		overwrite(t, dir, roofmt.APIName, api)
		time.Sleep(2 * intake.ClockTick) // what was written in this moment may be written again in it
		begun := time.Now()
		o := own(t, s, "live-one")
		if took := time.Since(begun); took != 0 || len(o.Task.Intakes()) != 2 {
			t.Errorf("%d changes after %v", len(o.Task.Intakes()), took)
		}
		closeTask(t, o.Task)
	})
}

// Our own histories need not look like Roo's: a resume after a kill of ours must
// not wait for an editor that is not there.
func TestOwnFilesNeedNoAgreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := patient(t, open(t, t.TempDir()))
		k := create(t, s, "lopsided")
		commit(t, k, task.API, apiRow(2, "user", "hello"))
		commit(t, k, task.UI, uiRow(500, "a reply that no message holds"))
		fixture.NoError(t, k.proj.Settle(context.Background()))
		closeTask(t, k)
		begun := time.Now()
		closeTask(t, own(t, s, "lopsided").Task)
		if took := time.Since(begun); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

// A file that is being written in place looks broken for a moment.
func TestABrokenFileMayBeInTheMaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, _ := continued(t)
		patient(t, s)
		ui, api := step(1)
		overwrite(t, dir, roofmt.UIName, ui[:len(ui)/2])
		later(t, 600*time.Millisecond, func() {
			overwrite(t, dir, roofmt.UIName, ui)
			overwrite(t, dir, roofmt.APIName, api)
		})
		o := own(t, s, "live-one")
		if len(o.Task.Intakes()) != 2 || o.Task.Intakes()[0].Refused != "" {
			t.Errorf("got %+v, want len(o.Task.Intakes()) = 2 and o.Task.Intakes()[0].Refused = \"\"", o.Task.Intakes())
		}
		closeTask(t, o.Task)
	})
}
