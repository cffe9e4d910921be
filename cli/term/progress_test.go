package term

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// onScreen is the line that a terminal shows after what was written to it.
func onScreen(text string) string {
	line := text[strings.LastIndex(text, "\r")+1:]
	return strings.TrimSuffix(line, "\x1b[K")
}

func TestProgress(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name  string
		width int
		after []time.Duration // between the calls of Show
		done  []int
		of    int
		want  string
		times int // that it was drawn
	}{
		{"quick work shows nothing", 80, []time.Duration{0, 900 * time.Millisecond}, []int{1, 9}, 10, "", 0},
		{"a second is long", 80, []time.Duration{time.Second}, []int{5}, 10, "[############............] reading five", 1},
		{"not too often", 80, []time.Duration{time.Second, time.Millisecond, 99 * time.Millisecond}, []int{0, 5, 10}, 10, "[########################] reading ten", 2},
		{"the time left", 80, []time.Duration{0, 4 * time.Second}, []int{0, 2}, 10, "[####....................] reading two, 16 s left", 1},
		{"minutes", 80, []time.Duration{0, 100 * time.Second}, []int{0, 2}, 10, "[####....................] reading two, 7 min left", 1},
		{"hours", 80, []time.Duration{0, time.Hour}, []int{0, 2}, 10, "[####....................] reading two, 4.0 h left", 1},
		{"no guess from nothing", 80, []time.Duration{time.Minute}, []int{0}, 10, "[........................] reading zero", 1},
		{"nobody knows how much", 80, []time.Duration{time.Minute}, []int{5}, 0, "reading five", 1},
		{"more than there was", 80, []time.Duration{time.Minute}, []int{12}, 10, "[########################] reading twelve", 1},
		{"a narrow terminal", 20, []time.Duration{time.Second}, []int{5}, 10, "[############.....…", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := now
			var b strings.Builder
			p := NewProgress(&b, func() int { return c.width }, func() time.Time { return at })
			words := map[int]string{0: "zero", 1: "one", 2: "two", 5: "five", 9: "nine", 10: "ten", 12: "twelve"}
			for i, d := range c.after {
				at = at.Add(d)
				p.Show("reading", c.done[i], c.of, words[c.done[i]])
			}
			if got := onScreen(b.String()); got != c.want || strings.Count(b.String(), "\r") != c.times {
				t.Errorf("%q after %q", got, b.String())
			}
			p.Clear()
			if got := onScreen(b.String()); got != "" || strings.Contains(b.String(), "\n") {
				t.Errorf("it stays: %q", got)
			}
			before := b.Len()
			at = at.Add(time.Hour)
			p.Show("reading", 1, 10, "late")
			if p.Clear(); b.Len() != before {
				t.Errorf("it comes back: %q", b.String()[before:])
			}
		})
	}
}

// In a window that became narrower the line fits: a longer one would move the lines up at each redraw.
func TestProgressInANarrowerWindow(t *testing.T) {
	at, width := time.Unix(0, 0), 80
	var b strings.Builder
	p := NewProgress(&b, func() int { return width }, func() time.Time { return at })
	for _, columns := range []int{80, 20} {
		at, width = at.Add(time.Minute), columns
		p.Show("reading", 1, 2, "one")
	}
	if got, want := onScreen(b.String()), "[############.....…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is named comes from files: nothing of it reaches the terminal raw.
func TestProgressIsSafe(t *testing.T) {
	at := time.Unix(0, 0)
	var b strings.Builder
	p := NewProgress(&b, func() int { return 0 }, func() time.Time { return at })
	at = at.Add(time.Minute)
	p.Show("x", 1, 2, "a\x1b]0;title\x07\nb\rc")
	if got := onScreen(b.String()); strings.ContainsAny(got, "\x1b\x07\n\r") || strings.Count(b.String(), "\x1b") != 1 {
		t.Errorf(`got %q, want not strings.ContainsAny(got, "\x1b\x07\n\r") and strings.Count(b.String(), "\x1b") = 1`,
			b.String())
	}
}

// A second piece of work is not judged by how long the first one took.
func TestProgressOfSeveralWorks(t *testing.T) {
	at := time.Unix(0, 0)
	var b strings.Builder
	p := NewProgress(&b, func() int { return 0 }, func() time.Time { return at })
	p.Show("first", 1, 2, "")
	at = at.Add(time.Hour)
	p.Show("second", 1, 2, "")
	if got := onScreen(b.String()); strings.Contains(got, "left") || !strings.Contains(got, "second") {
		t.Errorf(`got %q, want not strings.Contains(got, "left") and strings.Contains(got, "second")`, got)
	}
}

func TestProgressFromManyGoroutines(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, func() int { return 60 }, time.Now)
	p.next = time.Time{}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 200 {
				p.Show("work", i, 200, strings.Repeat("x", n))
			}
		})
	}
	all.Wait()
	p.Clear()
	if onScreen(b.String()) != "" {
		t.Errorf("got %q, want onScreen(b.String()) = \"\"", b.String())
	}
}
