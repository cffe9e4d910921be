package scale

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Times of the code, in microseconds: journal/postgres, cli/hosting and events have them.
const (
	second      = 1e6
	leaseLasts  = 3 * second
	renewEvery  = second // and how long a renewal may take
	scanEvery   = second
	pollEvery   = second
	reportEvery = second
	notifyEvery = 20e3
)

// Times of a simulation.
const (
	warm     = 1 * second // nothing is counted before
	killAt   = 5 * second
	horizon  = 15 * second
	slice    = 5e3        // of a list or search
	drowning = 5 * second // of work that waits: the simulation ends
	readMost = 50         // lines of the feed that are read at once
)

// Use is what the time of a database's processors is spent on.
type Use int

// Uses.
const (
	Commits Use = iota
	Renewals
	Scans
	TakeOvers
	Notifications
	Deliveries
	Polls
	FeedLines
	FeedReads
	Lists
	Searches
	uses
)

var useNames = [uses]string{
	"commits", "renewals", "scans for lost leases", "take-over", "notifications", "deliveries", "polls", "lines of the feed",
	"readers of the feed", "lists", "searches",
}

func (u Use) String() string { return useNames[u] }

type kind uint8

const (
	evCommit kind = iota
	evCommitted
	evSend
	evNotify
	evDeliver
	evWake
	evFeedRead
	evRenew
	evRenewed
	evScan
	evScanned
	evAttempted
	evPoll
	evReport
	evList
	evSearch
	evSlice
	evKill
)

type event struct {
	at     float64
	order  uint64 // of two at the same time
	from   float64
	left   float64
	server int32
	task   int32
	epoch  int32
	kind   kind
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// hold is a lease as its server believes to have it.
type hold struct{ task, epoch int32 }

type note struct {
	task  int32
	acked float64
}

type server struct {
	cell     int32
	dead     bool
	diedAt   float64
	held     []hold
	pending  []note
	sent     int // of pending: they are with the followers, where owners push
	sending  bool
	sendAt   float64 // not before
	followed int
	reading  bool
	read     int // lines of the feed
	r        *rand.Rand

	ticked float64 // the scan before
	seen   float64 // when the scan looked
	cursor int
	until  int
}

// suspect is a lease that may run out, or has.
type suspect struct {
	task int32
	gone float64 // when it was renewed or taken; 0 = it was not
}

type cell struct {
	first, size int
	free        float64 // when the processors have done what is there
	line        float64 // when the row of the feed is free
	notifying   float64 // when the lock of NOTIFY is free
	owned       int
	tasks       float64
	tenants     float64
	suspects    []suspect
	open        int // none before it is one
	lines       int // of the feed
	debt        float64
	next        int // reader
	spent       [uses]float64
	lineTime    float64
	notifyTime  float64
}

type task struct {
	owner   int32
	epoch   int32
	lease   float64
	watch   int32 // the server that follows it
	suspect int32 // -1 = none
}

type sim struct {
	costs   Costs
	load    Load
	design  Design
	machine Machine
	r       *rand.Rand
	now     float64
	queue   []event
	order   uint64
	servers []server
	cells   []cell
	tasks   []task
	tenant  float64 // tasks of the tenant that asks
	came    float64 // notifications, at all servers
	kills   bool
	broken  bool // a lease is taken without a look at it: for the test of the rules
	audit   audit
	out     Result
}

// Result is what a simulation gives. Times are in microseconds.
type Result struct {
	Servers, Databases                    int
	Commit, Delay, TakeOver, List, Search Samples
	Cores                                 [uses]float64 // asked of the database with the most tasks
	FeedLock, NotifyLock                  float64       // shares of the time, of the same one
	Connections                           int           // at most, of a database
	ServerCores                           float64       // of each server, for notifications
	Lost, Taken, Left                     int           // leases that ran out: all, taken over, not yet
	False                                 int           // of them, those of servers that live
	Refused                               int           // attempts to take over that came late
	Drowned                               bool          // work for more than 5 s waited; the simulation ended there
	Events                                int
	Problems                              []string // rules that were broken
	machine                               Machine
}

// Run simulates 15 s of the busiest hour, in which servers die.
func Run(c Costs, l Load, d Design, m Machine, seed uint64) Result {
	return newSim(c, l, d, m, seed).run()
}

func newSim(c Costs, l Load, d Design, m Machine, seed uint64) *sim {
	s := &sim{costs: c, load: l, design: d, machine: m, r: rand.New(rand.NewPCG(seed, 1)), kills: l.Killed > 0}
	size := d.Cell
	if size == 0 {
		size = l.Servers
	}
	for first := 0; first < l.Servers; first += size {
		s.cells = append(s.cells, cell{first: first, size: min(size, l.Servers-first)})
	}
	stored, tenant := spread(l, len(s.cells), s.r)
	s.tenant = tenant
	s.servers = make([]server, l.Servers)
	for i := range s.servers {
		s.servers[i] = server{cell: int32(i / size), r: rand.New(rand.NewPCG(seed, uint64(i)+2))} //nolint:gosec // some thousands
	}
	average := float64(l.Tasks*l.Servers) / float64(len(s.cells))
	for i := range s.cells {
		c := &s.cells[i]
		c.tasks, c.tenants = stored[i], max(1, stored[i]/float64(l.Tenants))
		running := float64(l.RunningEach()*c.size) * stored[i] / average * float64(l.Servers) / float64(len(s.cells)*c.size)
		if l.Owners > 0 {
			running = float64(l.Owners)
		}
		for n := range max(1, int(running+0.5)) {
			owner, watch := c.first+n%c.size, c.first+s.r.IntN(c.size)
			if l.Owners > 0 {
				owner, watch = c.first, c.first+n%c.size
			}
			s.servers[owner].held = append(s.servers[owner].held, hold{int32(len(s.tasks)), 1}) //nolint:gosec // some thousands
			s.tasks = append(s.tasks, task{owner: int32(owner), epoch: 1, lease: leaseLasts, watch: int32(watch), suspect: -1})
			s.servers[watch].followed++
			c.owned++
		}
	}
	s.audit.begin(s.tasks)
	for i := range s.servers {
		s.begin(int32(i)) //nolint:gosec // some thousands
	}
	return s
}

// begin starts what each server does, each at a time of its own.
func (s *sim) begin(i int32) {
	r := s.servers[i].r
	s.servers[i].ticked = r.Float64()*scanEvery - scanEvery
	s.add(event{at: s.servers[i].ticked + scanEvery, kind: evScan, server: i})
	s.add(event{at: r.Float64() * renewEvery, kind: evRenew, server: i})
	s.add(event{at: r.Float64() * pollEvery, kind: evPoll, server: i})
	if s.load.Feed {
		s.add(event{at: r.Float64() * reportEvery, kind: evReport, server: i})
	}
	if s.load.Lists > 0 {
		s.add(event{at: s.gap(i, s.load.Lists), kind: evList, server: i})
	}
	if s.load.Searches > 0 {
		s.add(event{at: s.gap(i, s.load.Searches), kind: evSearch, server: i})
	}
	if s.load.Every == 0 || len(s.servers[i].held) > 0 {
		s.add(event{at: r.Float64() * second, kind: evCommit, server: i})
	}
}

// gap is the time until the next of so many events a second.
func (s *sim) gap(i int32, rate float64) float64 { return s.servers[i].r.ExpFloat64() / rate * second }

func (s *sim) run() Result {
	if s.kills {
		s.add(event{at: killAt + s.r.Float64()*second, kind: evKill})
	}
	end := float64(horizon)
	for len(s.queue) > 0 {
		e := s.pop()
		if e.at > horizon {
			break
		}
		s.now = e.at
		s.out.Events++
		s.handle(e)
		if c := &s.cells[s.servers[e.server].cell]; c.free-s.now > drowning {
			s.out.Drowned, end = true, s.now
			break
		}
	}
	return s.result(end)
}

func (s *sim) result(end float64) Result {
	out := &s.out
	out.Servers, out.Databases, out.machine = len(s.servers), len(s.cells), s.machine
	busiest := &s.cells[0]
	for i := range s.cells {
		c := &s.cells[i]
		if sum(c.spent[:]) > sum(busiest.spent[:]) {
			busiest = c
		}
		for _, x := range c.suspects {
			if x.gone == 0 && s.tasks[x.task].lease < end {
				out.Left++
				out.Lost++
			}
		}
		out.Connections = max(out.Connections, c.size*(s.machine.Pool+1))
	}
	if s.design.Pool {
		out.Connections = 4 * s.machine.Cores
	}
	for u := range out.Cores {
		out.Cores[u] = busiest.spent[u] / end
	}
	out.FeedLock, out.NotifyLock = busiest.lineTime/end, busiest.notifyTime/end
	out.ServerCores = s.came * s.costs.NotifyServer / end / float64(len(s.servers))
	out.Problems = s.audit.problems
	for _, list := range []Samples{out.Commit, out.Delay, out.TakeOver, out.List, out.Search} {
		slices.Sort(list)
	}
	return *out
}

// work gives the database's processors something to do, and returns when it is done. wide is what all of them share.
func (s *sim) work(c *cell, use Use, one, wide float64) (done float64) {
	c.spent[use] += one + wide
	return s.raw(c, one, wide)
}

func (s *sim) raw(c *cell, one, wide float64) (done float64) {
	cores := float64(s.machine.Cores)
	begun := max(s.now, c.free)
	c.free = begun + (one+wide)/cores
	return begun + one + wide/cores
}

func (s *sim) sample(to *Samples, d float64) {
	if s.now > warm {
		*to = append(*to, d)
	}
}

func (s *sim) handle(e event) {
	v := &s.servers[e.server]
	c := &s.cells[v.cell]
	if v.dead && e.kind != evRenewed && e.kind != evCommitted {
		return
	}
	switch e.kind {
	case evCommit:
		s.commit(e.server, v, c)
	case evCommitted:
		s.committed(e, v)
	case evSend:
		s.send(e.server, v, c)
	case evNotify:
		s.notify(e.server, v, c)
	case evDeliver:
		s.sample(&s.out.Delay, s.work(c, Deliveries, s.costs.Delivery, 0)+max(0, s.costs.StatementWait-s.costs.Delivery)-e.from)
	case evWake:
		s.wake(c)
	case evFeedRead:
		v.reading = false
		if v.read < c.lines && !s.design.Page {
			s.readFeed(e.server)
		}
	case evRenew:
		s.renew(e.server, v, c)
	case evRenewed:
		s.renewed(v)
	case evScan:
		v.ticked = s.now
		s.add(event{at: s.work(c, Scans, s.costs.Scan+s.costs.ScanLease*s.share(c), 0), kind: evScanned, server: e.server})
	case evScanned:
		v.seen, v.cursor, v.until = s.now, c.open, len(c.suspects)
		s.attempt(e.server, v, c)
	case evAttempted:
		s.attempted(e, v, c)
		s.attempt(e.server, v, c)
	case evPoll:
		s.add(event{at: s.work(c, Polls, s.costs.Scan+s.costs.PollJournal*float64(v.followed), 0) + pollEvery, kind: evPoll, server: e.server})
	case evReport:
		cost := 2*s.costs.Scan + (s.costs.ScanLease+s.costs.OwnedLease)*s.share(c)
		s.add(event{at: s.work(c, Scans, cost, 0) + reportEvery, kind: evReport, server: e.server})
	case evList:
		s.ask(e, c, Lists, s.costs.ListTask*s.shown(c, true))
		s.add(event{at: s.now + s.gap(e.server, s.load.Lists), kind: evList, server: e.server})
	case evSearch:
		s.ask(e, c, Searches, s.costs.SearchTask*s.shown(c, false))
		s.add(event{at: s.now + s.gap(e.server, s.load.Searches), kind: evSearch, server: e.server})
	case evSlice:
		s.slice(e, c)
	case evKill:
		s.kill()
	}
}

// share is how many leases a scan looks at.
func (s *sim) share(c *cell) float64 {
	if s.design.Share {
		return float64(c.owned) / float64(c.size)
	}
	return float64(c.owned)
}

// shown is how many tasks a list or a search looks at.
func (s *sim) shown(c *cell, hot bool) float64 {
	n := c.tasks
	if s.design.Page {
		n = min(n, s.tenant)
	}
	if s.design.Cold && hot {
		n *= min(1, s.load.Hot/s.load.Kept)
	}
	return n
}

func (s *sim) ask(e event, c *cell, use Use, cost float64) {
	c.spent[use] += cost
	s.slice(event{server: e.server, epoch: int32(use), from: s.now, left: cost}, c) //nolint:gosec // eleven
}

// slice does some of a list, and the rest later: what is short does not wait for all of what is long.
func (s *sim) slice(e event, c *cell) {
	if e.left <= 0 {
		to := &s.out.List
		if Use(e.epoch) == Searches {
			to = &s.out.Search
		}
		s.sample(to, s.now-e.from)
		return
	}
	part := min(e.left, slice)
	s.add(event{at: s.raw(c, part, 0), kind: evSlice, server: e.server, epoch: e.epoch, from: e.from, left: e.left - part})
}

func (s *sim) commit(i int32, v *server, c *cell) {
	if s.load.Every == 0 {
		next := s.now + 0.1*second
		if n := len(v.held); n > 0 {
			next = s.now + s.gap(i, s.load.Running*float64(n))
		}
		s.add(event{at: next, kind: evCommit, server: i})
	}
	if len(v.held) == 0 {
		return
	}
	h := v.held[v.r.IntN(len(v.held))]
	done := s.work(c, Commits, s.costs.Commit, 0) + max(0, s.costs.CommitWait-s.costs.Commit)
	s.add(event{at: done, kind: evCommitted, server: i, task: h.task, epoch: h.epoch, from: s.now})
}

// committed is the answer of the database: a commit of an epoch that is over was refused.
func (s *sim) committed(e event, v *server) {
	if s.load.Every > 0 {
		s.add(event{at: s.now + s.load.Every*second, kind: evCommit, server: e.server})
	}
	t := &s.tasks[e.task]
	if t.epoch != e.epoch {
		v.drop(e.task)
		return
	}
	s.audit.commit(e.task, e.server, e.epoch)
	t.lease = max(t.lease, s.now+leaseLasts)
	s.renewedTask(e.task, v.dead)
	s.sample(&s.out.Commit, s.now-e.from)
	if v.dead {
		return
	}
	v.pending = append(v.pending, note{e.task, s.now})
	if !v.sending {
		v.sending = true
		s.add(event{at: max(s.now, v.sendAt), kind: evSend, server: e.server})
	}
}

func (v *server) drop(task int32) {
	v.held = slices.DeleteFunc(v.held, func(h hold) bool { return h.task == task })
}

// send announces, and then notifies.
func (s *sim) send(i int32, v *server, c *cell) {
	at := s.now
	switch {
	case s.load.Feed && s.design.Page: // the lines of a tenant wait for each other, and few do
		c.lineTime += s.costs.FeedWait / c.tenants
		at = s.work(c, FeedLines, s.costs.FeedLine, 0) + max(0, s.costs.CommitWait-s.costs.Commit)
	case s.load.Feed:
		begun := max(s.now, c.line)
		c.line = begun + s.costs.FeedWait
		c.lineTime += s.costs.FeedWait
		at = max(c.line, s.work(c, FeedLines, s.costs.FeedLine, 0))
	}
	v.sent = len(v.pending)
	s.add(event{at: at, kind: evNotify, server: i})
	if !s.design.Push {
		return
	}
	for _, n := range v.pending { // the owner sends the commits; no database is asked
		if w := s.tasks[n.task].watch; w != i && !s.servers[w].dead {
			s.came++
			s.sample(&s.out.Delay, s.now-n.acked+2*s.costs.DeliveryServer)
		}
	}
}

func (s *sim) notify(i int32, v *server, c *cell) {
	done := s.now
	if !s.design.Push {
		v.sent = len(v.pending) // also what came while the feed was written
		begun := max(s.now, c.notifying)
		c.notifying = begun + s.costs.Notify
		c.notifyTime += s.costs.Notify
		listeners := float64(c.size - 1)
		s.came += listeners
		done = max(c.notifying, s.work(c, Notifications, s.costs.Notify, s.costs.NotifyListener*listeners))
		heard := done + max(0, s.costs.NotifyWait-s.costs.Notify-s.costs.NotifyListener)
		for _, n := range v.pending {
			if w := s.tasks[n.task].watch; w != i && !s.servers[w].dead {
				s.add(event{at: heard, kind: evDeliver, server: w, from: n.acked})
			}
		}
	}
	if s.load.Feed {
		s.add(event{at: done, kind: evWake, server: i})
	}
	c.lines += v.sent
	v.pending, v.sendAt = append(v.pending[:0], v.pending[v.sent:]...), done+notifyEvery
	if v.sending = len(v.pending) > 0; v.sending {
		s.add(event{at: v.sendAt, kind: evSend, server: i})
	}
}

// wake wakes the readers of the feed: each server has one.
func (s *sim) wake(c *cell) {
	if !s.design.Page {
		for i := c.first; i < c.first+c.size; i++ {
			s.readFeed(int32(i)) //nolint:gosec // some thousands
		}
		return
	}
	for c.debt += float64(c.size) / c.tenants; c.debt >= 1; c.debt-- { // those that show the tenant
		c.next = (c.next + 1) % c.size
		s.readFeed(int32(c.first + c.next)) //nolint:gosec // some thousands
	}
}

// readFeed reads lines, and the commits that they name.
func (s *sim) readFeed(i int32) {
	v := &s.servers[i]
	if v.reading || v.dead {
		return
	}
	c := &s.cells[v.cell]
	n := min(c.lines-v.read, readMost)
	if s.design.Page {
		n = 1
	}
	v.reading = true
	v.read += n
	s.add(event{at: s.work(c, FeedReads, s.costs.FeedRead+float64(n)*s.costs.Delivery, 0), kind: evFeedRead, server: i})
}

func (s *sim) renew(i int32, v *server, c *cell) {
	done := s.now
	if len(v.held) > 0 {
		done = s.work(c, Renewals, s.costs.Renewal*float64(len(v.held)), 0)
		s.add(event{at: done, kind: evRenewed, server: i})
		for _, h := range v.held {
			if t := &s.tasks[h.task]; t.epoch == h.epoch && t.lease < done {
				s.suspect(c, h.task)
			}
		}
	}
	s.add(event{at: min(done, s.now+renewEvery) + renewEvery, kind: evRenew, server: i})
}

// renewed is when the database has renewed: also what ran out, unless it was taken, and for a server that died meanwhile.
func (s *sim) renewed(v *server) {
	v.held = slices.DeleteFunc(v.held, func(h hold) bool { return s.tasks[h.task].epoch != h.epoch })
	for _, h := range v.held {
		s.tasks[h.task].lease = s.now + leaseLasts
		s.renewedTask(h.task, v.dead)
	}
}

func (s *sim) renewedTask(t int32, dead bool) {
	if i := s.tasks[t].suspect; i >= 0 && !dead {
		c := &s.cells[s.servers[s.tasks[t].owner].cell]
		c.suspects[i].gone, s.tasks[t].suspect = s.now, -1
	}
}

func (s *sim) suspect(c *cell, t int32) {
	if s.tasks[t].suspect < 0 {
		s.tasks[t].suspect = int32(len(c.suspects)) //nolint:gosec // some millions
		c.suspects = append(c.suspects, suspect{task: t})
	}
	for c.open < len(c.suspects) && c.suspects[c.open].gone > 0 && c.suspects[c.open].gone < s.now-drowning {
		c.open++
	}
}

func (s *sim) kill() {
	n := max(1, int(s.load.Killed*float64(len(s.servers))+0.5))
	dead := s.r.Perm(len(s.servers))[:n]
	if s.load.Owners > 0 {
		dead = []int{0}
	}
	for _, i := range dead {
		v := &s.servers[i]
		v.dead, v.diedAt = true, s.now
		for _, h := range v.held {
			if s.tasks[h.task].epoch == h.epoch {
				s.suspect(&s.cells[v.cell], h.task)
			}
		}
	}
}

// attempt tries the next lease of those that the scan has found.
func (s *sim) attempt(i int32, v *server, c *cell) {
	for ; v.cursor < v.until; v.cursor++ {
		x := c.suspects[v.cursor]
		t := &s.tasks[x.task]
		if x.gone > 0 && x.gone <= v.seen || x.gone == 0 && t.lease >= v.seen || s.design.Share && !s.mine(i, c, x.task) {
			continue
		}
		cost := s.costs.Take
		if x.gone > 0 {
			cost = s.costs.Refused
		}
		s.add(event{at: s.work(c, TakeOvers, cost, 0), kind: evAttempted, server: i, task: int32(v.cursor)}) //nolint:gosec // some millions
		v.cursor++
		return
	}
	s.add(event{at: max(v.ticked+scanEvery, s.now), kind: evScan, server: i})
}

func (s *sim) attempted(e event, v *server, c *cell) {
	x := &c.suspects[e.task]
	t := &s.tasks[x.task]
	if (x.gone > 0 || t.lease >= s.now) && !s.broken {
		s.out.Refused++
		return
	}
	s.audit.take(x.task, e.server, t.lease, s.now)
	old := &s.servers[t.owner]
	if old.dead {
		s.out.TakeOver = append(s.out.TakeOver, s.now-old.diedAt)
	} else {
		s.out.False++
	}
	s.out.Lost++
	s.out.Taken++
	x.gone = s.now
	t.suspect = -1
	t.epoch++
	t.owner, t.lease = e.server, s.now+leaseLasts
	v.held = append(v.held, hold{x.task, t.epoch})
}

// mine reports whether a lost task is in the share of a server: it is the first in an order of the task's own that lives, or
// died so short ago that its own lease as a member still lasts.
func (s *sim) mine(i int32, c *cell, t int32) bool {
	for k := uint64(0); ; k++ {
		x := (uint64(t)*64 + k + 1) * 0x9E3779B97F4A7C15 //nolint:gosec // a hash
		x ^= x >> 29
		x *= 0xBF58476D1CE4E5B9
		j := int32(c.first + int((x>>33)%uint64(c.size))) //nolint:gosec // some thousands
		if j == i {
			return true
		}
		if v := &s.servers[j]; !v.dead || s.now < v.diedAt+leaseLasts || k > 60 {
			return false
		}
	}
}

// audit keeps the rules beside the model: it knows owners by what it was told, not by what the model decides with.
type audit struct {
	owner, epoch []int32
	problems     []string
}

func (a *audit) begin(tasks []task) {
	for _, t := range tasks {
		a.owner, a.epoch = append(a.owner, t.owner), append(a.epoch, t.epoch)
	}
}

func (a *audit) take(t, server int32, lease, now float64) {
	if lease >= now {
		a.problem("task %d was taken at %.0f us while its lease lasted until %.0f us", t, now, lease)
	}
	a.owner[t], a.epoch[t] = server, a.epoch[t]+1
}

func (a *audit) commit(t, server, epoch int32) {
	if a.owner[t] != server || a.epoch[t] != epoch {
		a.problem("server %d committed to task %d in epoch %d, which server %d owns in epoch %d", server, t, epoch, a.owner[t], a.epoch[t])
	}
}

func (a *audit) problem(format string, args ...any) {
	if len(a.problems) < 20 {
		a.problems = append(a.problems, fmt.Sprintf(format, args...))
	}
}
