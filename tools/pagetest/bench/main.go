// Command bench measures the web page as a person meets it: Chromium, without a window, and the real server as a child.
//
//	go run -C tools/pagetest ./bench           about ten minutes
//	go run -C tools/pagetest ./bench -quick    a smoke run, for machines whose times say nothing
//
// Each row has the median of the rounds, the smallest and the largest of them (on a busy machine the smallest says the
// most), and the bar that the page is held to. Nothing here asserts a time: it prints, and people judge. It fails only
// when something does not work. Memory and processor time are those of Linux.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are what a run measures with.
type options struct {
	roost   string // the program; built when empty
	browser string
	parts   string
	quick   bool
	dir     string // scratch
	rounds  int
}

// row is one line of the table.
type row struct{ what, got, best, worst, bar string }

// part is one measurement.
type part struct {
	letter string
	run    func(context.Context, *world) ([]row, error)
}

var parts = []part{
	{"h", histories},
	{"t", tasks},
	{"s", scrolls},
	{"m", memories},
	{"l", streams},
	{"i", idles},
	{"c", crowds},
	{"e", followers},
	{"w", weights},
}

func main() {
	var o options
	flag.StringVar(&o.roost, "roost", "", "the roost `program` to measure (default: built from this tree)")
	flag.StringVar(&o.browser, "browser", "chromium", "the `program` of the browser")
	flag.StringVar(&o.parts, "parts", "htsmlicew", "which `parts` to run: history, task, scroll, memory, live text, idle, crowd of tabs, event streams, weight")
	flag.IntVar(&o.rounds, "rounds", 10, "how often each thing is measured")
	flag.BoolVar(&o.quick, "quick", false, "a smoke run")
	flag.Parse()
	if o.quick {
		o.rounds = min(o.rounds, 2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.dir, err = os.MkdirTemp("", "roost-page-bench-*"); err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer os.RemoveAll(o.dir)
	if o.roost == "" {
		o.roost = filepath.Join(o.dir, "roost")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.roost, "./cmd/roost")
		build.Dir = filepath.Join("..", "..") // of the module of this program, in which go run -C starts it
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build roost (run this in tools/pagetest, or give -roost): %w\n%s", err, out)
		}
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	fmt.Printf("the page: %s/%s, %d cores, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), w.version)
	print(os.Stdout, row{"what", "median", "best", "worst", "bar"})
	for _, p := range parts {
		if !strings.Contains(o.parts, p.letter) {
			continue
		}
		rows, err := p.run(ctx, w)
		for _, r := range rows {
			r.what = p.letter + " " + r.what
			print(os.Stdout, r)
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", p.letter, err)
		}
	}
	return nil
}

func print(w io.Writer, r row) {
	fmt.Fprintf(w, "%-64s  %-9s  %-9s  %-9s  %s\n", r.what, r.got, r.best, r.worst, r.bar)
}

// figures are values of one thing.
type figures []float64

// row prints the median and the worst of them.
func (f figures) row(what, unit, bar string) row {
	if len(f) == 0 {
		return row{what, "-", "-", "-", bar}
	}
	sorted := slices.Sorted(slices.Values(f))
	show := func(v float64) string {
		if v >= 100 {
			return fmt.Sprintf("%.0f %s", v, unit)
		}
		return fmt.Sprintf("%.2g %s", v, unit)
	}
	return row{what, show(sorted[(len(sorted)-1)/2]), show(sorted[0]), show(sorted[len(sorted)-1]), bar}
}

// until waits for a condition.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); ; {
		ok, err := holds()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("never came true: %s: %w", what, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
