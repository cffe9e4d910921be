package shell

import "os"

// FindMarked lists the living processes whose environment carries mark, and those
// in a session that one of them leads or that lost its leader: such a session was
// made by the command, and a member of it may have cleared its environment. This
// process and those it descends from are never listed: a Roost that runs inside
// a command of another one carries the outer mark itself.
func FindMarked(mark string) []Member {
	if !usableMark(mark) {
		return nil
	}
	return surely(0, func(l *look) []Member { return l.carriers(mark) })
}

func (l *look) carriers(mark string) []Member {
	own := lineage()
	var all []Member
	stats := map[int]stat{}
	sessions := map[int]bool{}
	hit := map[int]bool{}
	l.each(func(pid int, s stat) {
		stats[pid] = s
		if own[pid] {
			return
		}
		if l.carries(pid, mark) {
			hit[pid] = true
			sessions[s.session] = true
		}
		all = append(all, Member{PID: pid, Name: s.name, started: s.started})
	})
	for id := range sessions {
		// An unmarked leader has let a stranger of ours in; the rest is not ours.
		if leader, alive := stats[id]; id <= 1 || alive && !leader.dead() && !hit[id] {
			delete(sessions, id)
		}
	}
	out := all[:0]
	for _, m := range all {
		if hit[m.PID] || sessions[stats[m.PID].session] {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// lineage is this process and what it descends from.
func lineage() map[int]bool {
	out := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !out[pid]; {
		out[pid] = true
		s, ok := readStat(pid)
		if !ok {
			break
		}
		pid = s.parent
	}
	return out
}
