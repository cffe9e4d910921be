// Package scale simulates a group of servers, from 3 to 10,000, with 10,000 tasks a server: 100 million.
//
// # What is simulated
//
// A discrete-event simulation: commits, the notifications of them, leases that are renewed, servers that die, the take-over
// of their tasks, polls, looks at the feed, lists and searches are events of a virtual clock. Each costs its database what
// Costs has, which the bench measured against PostgreSQL. A seed gives the same events each time.
//
// Tasks that run are simulated one by one: their owner, epoch, lease and follower. Stored tasks are not. They are a count
// and bytes for each tenant, since nothing happens to them but that lists and searches read them and that they take space.
//
// # The database
//
// The processors of a database are one queue, served in the order of arrival: work that arrives waits for what came
// before it, divided by the number of processors. Lines of the feed also wait for each other: each changes the same row.
// So do notifications, while they commit. Lists and searches come in slices of 5 ms, which share the processors with all
// else. What is asked for counts as load also when it cannot be served.
//
// # What is left out
//
// Networks and disks (a commit waits as long for its sync as measured), the memory of the database, the time that a run
// needs to continue, and the noise of a shared machine. Costs are those of one PostgreSQL on two processors; that a
// database with more of them is as much faster is assumed.
package scale

import (
	"fmt"
	"math/rand/v2"
)

// Load is what is asked of a group. A server is the unit: twice the servers have twice the tasks.
type Load struct {
	Servers  int
	Tasks    int     // stored, a server
	Kept     float64 // days until a task is purged
	Commits  int     // of a task, all its runs together
	Peak     float64 // the busiest hour, of the average
	Running  float64 // commits a second of a task that runs
	Lists    float64 // a second, a server
	Searches float64 // a second, a server
	Tenants  int     // tasks a tenant, on average
	Hot      float64 // days that a task's journal is in the database, where there is cold storage
	Killed   float64 // share of the servers that die, at least one
	Feed     bool    // each server has a reader of the feed of all tasks
	Every    float64 // seconds from one commit to the next of each server that commits; 0 = at random, as above
	Owners   int     // running tasks of the first server, which alone has tasks; 0 = all have
}

// Usual is the load of the tables in docs/scale.md.
func Usual(servers int) Load {
	return Load{
		Servers:  servers,
		Tasks:    10_000,
		Kept:     90,
		Commits:  300,
		Peak:     4,
		Running:  0.2,
		Lists:    0.1,
		Searches: 0.02,
		Tenants:  5_000,
		Hot:      7,
		Killed:   0.01,
		Feed:     true,
	}
}

// CommitsEach are the commits of a server a second in the busiest hour.
func (l Load) CommitsEach() float64 {
	return float64(l.Tasks) / l.Kept * float64(l.Commits) / 86400 * l.Peak
}

// RunningEach are the tasks that run on a server in the busiest hour.
func (l Load) RunningEach() int { return max(1, int(l.CommitsEach()/l.Running+0.5)) }

// Design is how a group is built.
type Design struct {
	Name  string
	Cell  int  // servers that share a database; 0 = all do. A tenant is in one cell.
	Share bool // each server scans for lost leases, and reports for the feed, in its share of the journals alone
	Push  bool // an owner sends commits to the servers that follow them; nobody listens
	Page  bool // lists, searches and the feed read one tenant
	Cold  bool // journals without a run for Load.Hot days are segments in an object storage, and out of the lists' way
	Pool  bool // a pooler keeps the connections to a database
}

// Today is the code as it is, on one database.
var Today = Design{Name: "today, one database"}

// Cells is the code as it is, a database for so many servers and the tenants that they serve.
func Cells(servers int) Design {
	return Design{Name: fmt.Sprintf("today, cells of %d", servers), Cell: servers}
}

// Parted is a design with all partitions.
func Parted(servers int) Design {
	return Design{
		Name:  fmt.Sprintf("parted, cells of %d", servers),
		Cell:  servers,
		Share: true,
		Push:  true,
		Page:  true,
		Cold:  true,
		Pool:  true,
	}
}

// Machine is what the databases run on.
type Machine struct {
	Cores       int // of each database
	Connections int // that it allows
	Pool        int // connections that a server opens at most, one more listens
}

// Usual databases: PostgreSQL's guides advise against more connections than some hundreds; 1,000 is generous.
var usualMachine = Machine{Cores: 16, Connections: 1000, Pool: 4}

// UsualMachine is the machine of the tables in docs/scale.md.
func UsualMachine() Machine { return usualMachine }

// spread gives each cell its share of the tenants: sizes differ, a few are twenty times the average, and each goes, the
// largest first, to the cell with the fewest tasks. It returns the tasks of each cell, and of a tenant that asks.
func spread(l Load, cells int, r *rand.Rand) (tasks []float64, tenant float64) {
	all := float64(l.Servers) * float64(l.Tasks)
	n := max(cells, int(all/float64(l.Tenants)))
	sizes, sum := make([]float64, n), 0.0
	for i := range sizes {
		sizes[i] = pareto(r)
		sum += sizes[i]
	}
	sortDown(sizes)
	tasks = make([]float64, cells)
	heap := make([]int, cells) // the cells, fewest tasks first
	for i := range heap {
		heap[i] = i
	}
	squares := 0.0
	for _, size := range sizes {
		size *= all / sum
		squares += size * size
		tasks[heap[0]] += size
		sink(heap, tasks)
	}
	return tasks, squares / all // who has more tasks asks more often
}
