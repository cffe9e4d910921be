package scale

import (
	"flag"
	"fmt"
	"io"
	"sort"
)

// Prices are in dollars. They are round assumptions, not those of a vendor: give your own.
type Prices struct {
	DatabaseGB float64 // a GB on the disks of a database, a month
	ObjectGB   float64 // a GB in an object storage, a month
	Put        float64 // 1,000 objects written
	Core       float64 // a processor with its memory, a month
	Server     int     // processors of a server
	Copies     float64 // of a database: it and its standby
	Headroom   float64 // share of a database's processors that the busiest hour may use
}

// UsualPrices are the prices of the table in docs/scale.md.
func UsualPrices() Prices {
	return Prices{
		DatabaseGB: 0.12,
		ObjectGB:   0.023,
		Put:        0.005,
		Core:       30,
		Server:     2,
		Copies:     2,
		Headroom:   0.6,
	}
}

// Define defines the flags of prices.
func (p *Prices) Define(f *flag.FlagSet) {
	f.Float64Var(&p.DatabaseGB, "price-database-gb", p.DatabaseGB, "`dollars` for a GB on the disks of a database, a month")
	f.Float64Var(&p.ObjectGB, "price-object-gb", p.ObjectGB, "`dollars` for a GB in an object storage, a month")
	f.Float64Var(&p.Put, "price-put", p.Put, "`dollars` for 1,000 objects written")
	f.Float64Var(&p.Core, "price-core", p.Core, "`dollars` for a processor with its memory, a month")
	f.IntVar(&p.Server, "server-cores", p.Server, "`processors` of a server")
}

// Report is what Print prints.
type Report struct {
	Costs    Costs
	Load     Load
	Machine  Machine
	Prices   Prices
	Seed     uint64
	Sizes    []int
	Designs  []Design
	Ordinary []int // sizes among which the largest group is searched that a design carries
}

// The bars of a group that works.
const (
	fullShare    = 0.8         // of a resource, at most
	goodDelay    = 100e3       // of a commit to a follower, p99
	goodTakeOver = 10 * second // p99
	goodList     = 1 * second  // p99
)

// Resource is something that can be used up.
type Resource struct {
	Name  string
	Share float64 // that is asked for
}

// Fullest is the resource that is used most.
func (r Result) Fullest() Resource {
	most := Commits
	for u := range r.Cores {
		if r.Cores[u] > r.Cores[most] {
			most = Use(u)
		}
	}
	best := Resource{"processors of the database (" + most.String() + ")", sum(r.Cores[:]) / float64(r.machine.Cores)}
	for _, x := range []Resource{
		{"row of the feed", r.FeedLock},
		{"lock of NOTIFY", r.NotifyLock},
		{"connections", float64(r.Connections) / float64(r.machine.Connections)},
		{"processor of each server (notifications)", r.ServerCores},
	} {
		if x.Share > best.Share {
			best = x
		}
	}
	return best
}

// Works reports whether a group meets its bars; else why not.
func (r Result) Works() (bool, string) {
	switch f := r.Fullest(); {
	case f.Share > fullShare:
		return false, f.Name
	case r.Drowned:
		return false, "the database drowns"
	case r.Delay.At(0.99) > goodDelay:
		return false, "delay"
	case r.TakeOver.At(0.99) > goodTakeOver || r.Left > 0:
		return false, "take-over"
	case r.List.At(0.99) > goodList:
		return false, "lists"
	}
	return true, ""
}

// Print simulates and prints all tables.
func Print(w io.Writer, r Report) error {
	l := r.Load
	fmt.Fprintf(w, "A server has %d tasks, kept %.0f days, %d commits each: in the busiest hour %.2f commits a second and %d running tasks.\n"+
		"A database has %d processors and %d connections. Seed %d.\n\n", l.Tasks, l.Kept, l.Commits, l.CommitsEach(), l.RunningEach(),
		r.Machine.Cores, r.Machine.Connections, r.Seed)
	for _, d := range r.Designs {
		fmt.Fprintf(w, "%s\n", d.Name)
		fmt.Fprintf(w, "  %7s %9s %11s %9s %9s %9s %9s %7s  %s\n", "servers", "databases", "tasks", "delay p99", "take-over", "in vain", "list p99", "full", "resource that is used most")
		for _, n := range r.Sizes {
			got, err := r.one(n, d)
			if err != nil {
				return err
			}
			f := got.Fullest()
			fmt.Fprintf(w, "  %7d %9d %11d %9s %9s %9d %9s %6.0f%%  %s\n", n, got.Databases, n*l.Tasks, got.time(got.Delay), got.time(got.TakeOver),
				got.Refused, got.time(got.List), 100*f.Share, f.Name)
		}
		if d.Cell > 0 && !d.Share {
			fmt.Fprintln(w)
			continue // one database carries what it carries today
		}
		if err := r.largest(w, d); err != nil {
			return err
		}
	}
	if err := r.uses(w); err != nil {
		return err
	}
	return r.money(w)
}

func (r Report) one(n int, d Design) (Result, error) {
	l := r.Load
	l.Servers = n
	got := Run(r.Costs, l, d, r.Machine, r.Seed)
	if len(got.Problems) > 0 {
		return got, fmt.Errorf("%s, %d servers: the simulation broke a rule: %s", d.Name, n, got.Problems[0])
	}
	return got, nil
}

// time is the p99 of times; those of a database that drowns only grow.
func (r Result) time(s Samples) string {
	switch t := s.At(0.99); {
	case r.Drowned:
		return "drowns"
	case len(s) == 0:
		return "-"
	case t >= second:
		return fmt.Sprintf("%.1f s", t/second)
	default:
		return fmt.Sprintf("%.1f ms", t/1e3)
	}
}

// largest finds the largest group on one database.
func (r Report) largest(w io.Writer, d Design) error {
	d.Cell = 0
	last, why := 0, ""
	for _, n := range r.Ordinary {
		got, err := r.one(n, d)
		if err != nil {
			return err
		}
		var works bool
		if works, why = got.Works(); !works {
			break
		}
		last = n
	}
	if why == "" {
		why = "nothing, up to here"
	}
	fmt.Fprintf(w, "  one database carries %d servers; then it lacks: %s\n\n", last, why)
	return nil
}

// uses prints what each use asks of the processors of one database.
func (r Report) uses(w io.Writer) error {
	for _, d := range []Design{Today, r.Designs[len(r.Designs)-1]} {
		d.Cell = 0
		var all []Result
		fmt.Fprintf(w, "processors that one database needs, %s\n  %-24s", d.Name, "servers")
		for _, n := range r.Sizes {
			l := r.Load
			l.Servers = n
			all = append(all, Asked(r.Costs, l, d))
			fmt.Fprintf(w, " %10d", n)
		}
		fmt.Fprintf(w, "  alone fills %d at", r.Machine.Cores)
		for u := range uses {
			if u == TakeOvers { // they come when servers die
				continue
			}
			fmt.Fprintf(w, "\n  %-24s", u)
			for _, x := range all {
				fmt.Fprintf(w, " %10.2f", x.Cores[u])
			}
			fmt.Fprintf(w, "  %s", r.fills(d, u))
		}
		fmt.Fprintf(w, "\n  %-24s", "row of the feed, in use")
		for _, x := range all {
			fmt.Fprintf(w, " %9.0f%%", 100*x.FeedLock)
		}
		fmt.Fprint(w, "\n\n")
	}
	return nil
}

// fills is the number of servers at which one use alone takes all processors of a database.
func (r Report) fills(d Design, u Use) string {
	const most = 1_000_000
	l := r.Load
	l.Servers = 1 + sort.Search(most, func(n int) bool {
		l.Servers = n + 1
		return Asked(r.Costs, l, d).Cores[u] >= float64(r.Machine.Cores)
	})
	if l.Servers > most {
		return "-"
	}
	return fmt.Sprint(l.Servers)
}

// Asked is what a group asks of one database, by the rates alone: what it would get if nothing were ever full.
func Asked(c Costs, l Load, d Design) (r Result) {
	n := float64(l.Servers)
	running, commits := float64(l.RunningEach())*n, float64(l.RunningEach())*n*l.Running
	tasks := float64(l.Tasks) * n
	seen, listed, listeners, readers := running, tasks, n-1, n
	if d.Share {
		seen /= n
	}
	if d.Page {
		listed, readers = min(tasks, askingTenant*float64(l.Tenants)), n/max(1, tasks/float64(l.Tenants))
	}
	searched := listed
	if d.Cold {
		listed *= min(1, l.Hot/l.Kept)
	}
	elsewhere := (n - 1) / n
	if d.Push {
		listeners, elsewhere = -1, 0
	}
	sends := commits // fewer when a server commits more often than it notifies
	if most := n * second / notifyEvery; sends > most {
		sends = most
	}
	r.Cores = [uses]float64{
		Commits:       commits * c.Commit,
		Renewals:      running * c.Renewal,
		Scans:         n*(c.Scan+seen*c.ScanLease) + n*(2*c.Scan+seen*(c.ScanLease+c.OwnedLease)),
		Notifications: sends * max(0, c.Notify+listeners*c.NotifyListener),
		Deliveries:    commits * elsewhere * c.Delivery,
		Polls:         n*c.Scan + running*c.PollJournal,
		FeedLines:     sends * c.FeedLine,
		FeedReads:     sends * readers * (c.FeedRead + commits/sends*c.Delivery),
		Lists:         n * l.Lists * listed * c.ListTask,
		Searches:      n * l.Searches * searched * c.SearchTask,
	}
	if d.Push {
		r.Cores[Notifications] = 0
	}
	for u := range r.Cores {
		r.Cores[u] /= second
	}
	r.FeedLock = sends * c.FeedWait / second
	if d.Page {
		r.FeedLock /= max(1, tasks/float64(l.Tenants))
	}
	return r
}

const gb = 1e9

// money prints what a new task costs until it is purged.
func (r Report) money(w io.Writer) error {
	fmt.Fprintf(w, "dollars for 1,000 tasks, each kept %.0f days; storage of a server's tasks\n  %7s  %-24s %10s %10s %10s %10s %9s %9s\n", r.Load.Kept,
		"servers", "design", "database", "storage", "servers", "sum", "hot", "cold")
	for _, n := range r.Sizes {
		for _, d := range r.Designs {
			b := r.Bill(n, d)
			sum := "no machine"
			if b.Fits {
				sum = fmt.Sprintf("%.2f", 1000*(b.Database+b.Storage+b.Servers))
			}
			fmt.Fprintf(w, "  %7d  %-24s %10.2f %10.2f %10.2f %10s %6.1f GB %6.1f GB\n", n, d.Name, 1000*b.Database, 1000*b.Storage, 1000*b.Servers, sum, b.Hot, b.Cold)
		}
	}
	return nil
}

// Bill is what one task costs, and what the tasks of a server take.
type Bill struct {
	Database, Storage, Servers float64 // dollars: processors of the databases; disks and objects; processors of the servers
	Hot, Cold                  float64 // GB of a server's tasks
	Fits                       bool    // the processors are those of databases that can be had
}

// Bill is the bill of a design, by the rates alone.
func (r Report) Bill(n int, d Design) (b Bill) {
	l, p, c := r.Load, r.Prices, r.Costs
	cells := 1
	if d.Cell > 0 {
		cells = (n + d.Cell - 1) / d.Cell
	}
	l.Servers = (n + cells - 1) / cells
	asked := Asked(c, l, d)
	cores := max(2, sum(asked.Cores[:])/p.Headroom)
	b.Fits = cores <= 128 && asked.FeedLock < 1
	monthly := float64(n) * float64(l.Tasks) * 30 / l.Kept // new tasks of a month
	b.Database = cores * float64(cells) * p.Copies * p.Core / monthly
	b.Servers = float64(n*p.Server) * p.Core / monthly
	hot := l.Kept
	if d.Cold {
		hot = min(l.Hot, l.Kept)
	}
	each := float64(l.Commits) / gb
	b.Hot = each * c.CommitHot * float64(l.Tasks) * hot / l.Kept
	b.Cold = each * c.CommitCold * float64(l.Tasks) * (1 - hot/l.Kept)
	b.Storage = each * (c.CommitHot*p.Copies*p.DatabaseGB*hot/30 + c.CommitCold*p.ObjectGB*(l.Kept-hot)/30)
	if d.Cold {
		b.Storage += p.Put / 1000
	}
	return b
}
