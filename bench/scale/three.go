package scale

import "slices"

// How far the simulation of three servers may be from three servers, either way. A delay of a millisecond is for the most
// part that of processes and timers which wake, and those are not simulated; nor is a p99 of a machine that others use.
const (
	DelayAgrees    = 5.0
	TakeOverAgrees = 1.5
)

// lostTasks are the tasks of the server that the bench lets die.
const lostTasks = 50

// Three simulates what the bench measured with three servers (-parts g): one commits 50 times a second to so many followed
// tasks; and one dies that owns 50. The database has so many processors.
func Three(c Costs, followed, cores int) (delay, takeOver Samples) {
	quiet := Load{Servers: 3, Tasks: 1000, Kept: 90, Running: 0.01, Tenants: 1000, Every: 0.02, Owners: followed}
	m := Machine{Cores: cores, Connections: 100, Pool: 4}
	delay = Run(c, quiet, Today, m, 1).Delay
	quiet.Killed, quiet.Every, quiet.Owners = 1, 0, lostTasks
	for seed := range uint64(20) {
		takeOver = append(takeOver, Run(c, quiet, Today, m, seed).TakeOver...)
	}
	slices.Sort(takeOver)
	return delay, takeOver
}
