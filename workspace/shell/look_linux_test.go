package shell

import (
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// A command may leave somebody who starts another and ends, who does the same, each in a
// session of his own: at no moment does one look at all processes have to see any of them.
func TestWhoPartsAtOnceIsEnded(t *testing.T) {
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			mark := NewMark()
			line := "(setsid sh -c '(setsid sleep 300 &) &' &) >/dev/null 2>&1"
			res, err := Run(t.Context(), Command{Line: line, Dir: "/", Mark: mark})
			if err != nil || len(res.Ended) == 0 || len(res.Survivors) > 0 {
				t.Errorf("got %+v, %v", res, err)
			}
			if left, err := EndMarked(t.Context(), mark); left != nil || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	wg.Wait()
}

// Where a look is not sure that it has seen all, there is another, up to a bound: where
// strangers come and go all the time none is ever sure.
func TestLooksGoOnUntilOneIsSure(t *testing.T) {
	one := []Member{{PID: 7}}
	for _, tt := range []struct {
		name   string
		unsure int // so many looks
		found  int // by this look
		want   int // looks
	}{
		{"nobody there", 0, 0, 1},
		{"found at once", 0, 1, 1},
		{"found, and there may be more", 9, 1, 1},
		{"nobody, seen twice", 1, 0, 2},
		{"found by the second look", 1, 2, 2},
		{"never sure", 1000, 0, looks},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			got := surely(0, func(l *look) []Member {
				n++
				if (l.before != nil) != (n > 1) || n > 1 && !l.before[n-1] {
					t.Errorf("look %d does not know what the one before it saw: %v", n, l.before)
				}
				l.seen[n] = true
				l.unsure = n <= tt.unsure
				if n == tt.found {
					return one
				}
				return nil
			})
			if n != tt.want || slices.Equal(got, one) != (tt.found > 0) {
				t.Errorf("%s: found %v in %d looks, want %d", tt.name, got, n, tt.want)
			}
		})
	}
}

// What may hide one of ours, and for how long.
func TestWhatALookIsNotSureOf(t *testing.T) {
	mark := NewMark()
	ours := start(t, []string{markVar + "=" + mark}, "/bin/sleep", "300")
	empty := start(t, []string{}, "/bin/sleep", "300")
	fixture.Eventually(t, "it has become its program", func() bool { s, _ := readStat(empty); return s.bare && s.name == "sleep" })
	for _, tt := range []struct {
		name        string
		pid         int
		known       bool // by the look before
		carries     bool
		unsure      bool
		seen, after bool // it counts as seen before and after
	}{
		{"one of ours", ours, false, true, false, true, true},
		{"an empty environment", empty, false, false, false, true, true},
		{"gone since it was listed", 1 << 30, false, false, true, true, true},
		{"a known stranger, gone", 1 << 30, true, false, false, true, true},
		{"a stranger", os.Getpid(), false, false, false, true, true},
	} {
		l := &look{before: map[int]bool{tt.pid: tt.known}, seen: map[int]bool{tt.pid: tt.seen}}
		if got := l.carries(tt.pid, mark); got != tt.carries || l.unsure != tt.unsure || l.seen[tt.pid] != tt.after {
			t.Errorf("%s: carries %v, unsure %v, seen %v", tt.name, got, l.unsure, l.seen[tt.pid])
		}
	}
}

// A zombie may have started somebody before it died. One that was a zombie before did not.
func TestOnlyNewZombiesAreAskedTwice(t *testing.T) {
	pid := start(t, []string{}, "/bin/sleep", "300")
	s, ok := readStat(pid)
	if !ok {
		t.Fatal("no such process")
	}
	kill(Process{}, []Member{{PID: pid, started: s.started}})
	fixture.Eventually(t, "it is a zombie", func() bool { now, ok := readStat(pid); return ok && now.dead() })
	for _, tt := range []struct {
		name   string
		pid    int
		since  int64
		known  bool
		unsure bool
	}{
		{"a new zombie", pid, s.started, false, true},
		{"one that was a zombie before", pid, s.started, true, false},
		{"one that began earlier", pid, s.started + 1, false, false},
		{"gone since it was listed", 1 << 30, s.started, false, true},
	} {
		l := &look{since: tt.since, before: map[int]bool{tt.pid: tt.known}, seen: map[int]bool{}}
		l.at(tt.pid, func(int, stat) { t.Errorf("%s is taken for alive", tt.name) })
		if l.unsure != tt.unsure {
			t.Errorf("%s: unsure %v", tt.name, l.unsure)
		}
	}
	l := &look{since: s.started + 1<<40, seen: map[int]bool{}}
	l.each(func(int, stat) { t.Error("somebody who began earlier is looked at") })
}

// Who ends by himself in time is not spoken of; who does not is there to be ended.
func TestTheWaitForWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends time.Duration // 0: never
		hurt time.Duration // when somebody is in a hurry; 0: never
		want bool          // something is left
		took time.Duration
	}{
		{"gone in time", 100 * time.Millisecond, 0, false, 100 * time.Millisecond},
		{"stays", 0, 0, true, settle},
		{"too late", settle + time.Second, 0, true, settle},
		{"a cancel cuts it short", 0, 35 * time.Millisecond, true, 35 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				hurry := make(chan struct{})
				if tt.hurt > 0 {
					time.AfterFunc(tt.hurt, func() { close(hurry) })
				}
				left := await(Process{}, func(Process) []Member {
					if tt.ends > 0 && time.Since(begin) >= tt.ends {
						return nil
					}
					return []Member{{PID: 1 << 30}}
				}, settle, hurry)
				if took := time.Since(begin); (len(left) > 0) != tt.want || took != tt.took {
					t.Errorf("left %v after %v, want %v after %v", left, took, tt.want, tt.took)
				}
			})
		})
	}
}

// The end is over within two seconds, says what would not go, and takes no longer than the
// last of them.
func TestTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends time.Duration // 0: never
		left bool
		most time.Duration
	}{
		{"nobody", time.Nanosecond, false, pollEvery},
		{"goes when asked", 50 * time.Millisecond, false, 60 * time.Millisecond},
		{"goes when killed", grace + 30*time.Millisecond, false, grace + 60*time.Millisecond},
		{"goes long after it was killed", grace + time.Second, false, grace + killWait},
		{"never", 0, true, 2*time.Second - settle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				left := end(Process{}, func(Process) []Member {
					if tt.ends > 0 && time.Since(begin) >= tt.ends {
						return nil
					}
					return []Member{{PID: 1 << 30}}
				})
				if took := time.Since(begin); (len(left) > 0) != tt.left || took > tt.most {
					t.Errorf("left %v after %v, want %v within %v", left, took, tt.left, tt.most)
				}
			})
		})
	}
}
