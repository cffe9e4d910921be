// Command bench measures what Roost's own design asks for, each number as a
// ratio to something that runs beside it in the same run on the same disk:
//
//	go run ./bench            about 90 seconds
//	go run ./bench -quick     a smoke run, for machines whose times say nothing
//	go run ./bench -full      100,000 messages and a 500 MB task
//
// The yardstick is a bare append+fdatasync of the same bytes, done turn about
// with what is measured, so that a slow disk or a busy neighbour slows both.
// Nothing here asserts a time: it prints, and people judge. It fails only when
// something does not work.
//
// Limits: peak memory and the cold page need Linux; elsewhere they are left out.
// The model is instant and on loopback, so provider latency is not in any number.
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
	"time"
)

// options are what a run measures with.
type options struct {
	dir   string // scratch, on the disk that is measured
	roost string // the program; built when empty
	parts string // which parts, as digits
	quick bool
	full  bool
	size  int64 // bytes of the big task
	out   io.Writer
	env   []string // further variables of the program
	costs string   // the file that the costs of a group are written to
}

func main() {
	var o options
	var megabytes int64
	flag.StringVar(&o.dir, "dir", "", "scratch `folder` on the disk to measure (default: a new one in the temporary folder)")
	flag.StringVar(&o.roost, "roost", "", "the roost `program` to measure (default: built from this tree)")
	flag.StringVar(&o.parts, "parts", "12345789dcrkhtfspew", "which `parts` to run")
	flag.BoolVar(&o.quick, "quick", false, "a smoke run of a few seconds")
	flag.BoolVar(&o.full, "full", false, "also 100,000 messages and a 500 MB task")
	flag.Int64Var(&megabytes, "size", 0, "`MB` of the big task (default 100; 500 with -full, 4 with -quick)")
	flag.StringVar(&o.costs, "costs", "", "with -parts g: the `file` for bench/scale that gets what was measured")
	flag.Parse()
	switch {
	case megabytes > 0:
		o.size = megabytes << 20
	case o.full:
		o.size = 500 << 20
	case o.quick:
		o.size = 4 << 20
	default:
		o.size = 100 << 20
	}
	o.out = os.Stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part is one measurement; it gives rows of the table.
type part struct {
	digit string
	name  string
	run   func(context.Context, options) ([]row, error)
}

var parts = []part{
	{"1", "durable commit of a step to both histories", commits},
	{"2", "bytes written for a step", written},
	{"34", "engine overhead, memory, start", turns},
	{"e", "the program in an empty home", programs},
	{"5", "last page of a big task", pages},
	{"7", "search and list of files", fileTools},
	{"c", "prompt caches", caches},
	{"k", "checkpoints of files", checkpoints},
	{"8", "list of all tasks", lists},
	{"9", "search", searches},
	{"d", "lists and searches in PostgreSQL", sharedCatalog},
	{"r", "rewind, undo, fork", rewinds},
	{"h", "a server with many tasks", served},
	{"t", "many tasks at once", crowds},
	{"f", "followers over HTTP", audiences},
	{"s", "screens", screens},
	{"p", "journals in PostgreSQL", shared},
	{"w", "whole turns in PostgreSQL", databaseTurns},
	{"x", "servers that are killed", killedServers},
	{"g", "costs of a group of servers", groupCosts},
}

func run(ctx context.Context, o options) error {
	begun := time.Now()
	scratch, err := os.MkdirTemp(o.dir, "roost-bench-*")
	if err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	o.dir = scratch
	if o.roost == "" {
		if o.roost, err = build(ctx, filepath.Join(scratch, "roost"), roostPackage); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.out, "roost bench: %s/%s, %d cores, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	header(o.out)
	for _, p := range parts {
		if !wanted(o.parts, p.digit) {
			continue
		}
		rows, err := p.run(ctx, o)
		for _, r := range rows {
			r.print(o.out)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Fprintf(o.out, "\n%.0f s\n", time.Since(begun).Seconds())
	return nil
}

func wanted(asked, digits string) bool {
	for _, a := range asked {
		for _, d := range digits {
			if a == d {
				return true
			}
		}
	}
	return false
}

const roostPackage = "github.com/roost-dev/roost/cmd/roost"

// build makes a program of a package or file as Roost is released, and gives its path. The package must be of the module
// that contains the working folder.
func build(ctx context.Context, program, of string) (string, error) {
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, of)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s (run this inside the module, or give -roost): %w\n%s", of, err, out)
	}
	return program, nil
}
