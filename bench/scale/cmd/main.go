// Command cmd prints how a group of servers grows: docs/scale.md has its tables.
//
//	go run ./bench/scale/cmd
//	go run ./bench/scale/cmd -costs FILE    with what go run ./bench -parts g -costs FILE has measured
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/bench/scale"
)

func main() {
	load, machine, prices := scale.Usual(0), scale.UsualMachine(), scale.UsualPrices()
	servers := flag.String("servers", "3,30,300,3000,10000", "how many `servers`")
	costs := flag.String("costs", "", "the `file` with what acts cost (default: that of the repository)")
	seed := flag.Uint64("seed", 1, "the `seed`")
	cell := flag.Int("cell", 30, "`servers` of a cell, with the code of today")
	parted := flag.Int("parted", 300, "`servers` of a cell, with all partitions")
	flag.IntVar(&machine.Cores, "cores", machine.Cores, "`processors` of a database")
	flag.IntVar(&machine.Connections, "connections", machine.Connections, "`connections` that a database allows")
	flag.IntVar(&load.Tasks, "tasks", load.Tasks, "stored `tasks` a server")
	flag.Float64Var(&load.Kept, "kept", load.Kept, "`days` until a task is purged")
	flag.IntVar(&load.Commits, "commits", load.Commits, "`commits` of a task")
	flag.Float64Var(&load.Peak, "peak", load.Peak, "`times` that the busiest hour has of the average")
	flag.Float64Var(&load.Running, "running", load.Running, "`commits` a second of a task that runs")
	flag.Float64Var(&load.Lists, "lists", load.Lists, "lists a `second`, a server")
	flag.Float64Var(&load.Searches, "searches", load.Searches, "searches a `second`, a server")
	flag.IntVar(&load.Tenants, "tenant", load.Tenants, "`tasks` of a tenant, on average")
	flag.Float64Var(&load.Hot, "hot", load.Hot, "`days` that a journal is hot")
	flag.Float64Var(&load.Killed, "killed", load.Killed, "`share` of the servers that die at once")
	prices.Define(flag.CommandLine)
	flag.Parse()
	if err := run(*servers, *costs, *seed, load, machine, prices, *cell, *parted); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(servers, file string, seed uint64, load scale.Load, machine scale.Machine, prices scale.Prices, cell, parted int) error {
	costs, err := scale.Measured()
	if file != "" {
		costs, err = scale.Read(file)
	}
	if err != nil {
		return err
	}
	var sizes []int
	for text := range strings.SplitSeq(servers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-servers %q: %q is not a number of servers", servers, text)
		}
		sizes = append(sizes, n)
	}
	return scale.Print(os.Stdout, scale.Report{
		Costs:    costs,
		Load:     load,
		Machine:  machine,
		Prices:   prices,
		Seed:     seed,
		Sizes:    sizes,
		Designs:  []scale.Design{scale.Today, scale.Cells(cell), scale.Parted(parted)},
		Ordinary: []int{3, 10, 20, 30, 50, 80, 100, 150, 200, 300, 500, 800},
	})
}
