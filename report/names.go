package report

import (
	"sort"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
)

// ShortNames gives each of some tasks, by SOURCE:ID, the shortest name that finds it among all tasks: a beginning
// or an end of its id, with its source where one id is in several sources. A name never looks like a flag.
func ShortNames(all []store.Ref, items []api.Summary) map[string]string {
	ids := map[string]int{}
	for _, t := range items { // a task that was made since then is listed, too
		ids[t.ID] = 0
	}
	copies := map[string]bool{} // a copy goes by the name of its task
	for _, t := range items {
		for _, path := range t.Copies {
			copies[path] = true
		}
	}
	for _, r := range all {
		if !copies[r.Dir] {
			ids[r.ID]++
		}
	}
	sorted, turned := make([]string, 0, len(ids)), make([]string, 0, len(ids))
	for id := range ids {
		sorted, turned = append(sorted, id), append(turned, reverse(id))
	}
	sort.Strings(sorted)
	sort.Strings(turned)
	names := map[string]string{}
	for _, t := range items {
		begin, end := t.ID[:needed(sorted, t.ID)], needed(turned, reverse(t.ID))
		for end < len(t.ID) && t.ID[len(t.ID)-end] == '-' {
			end++
		}
		name := t.ID
		for _, short := range []string{begin, t.ID[len(t.ID)-end:]} {
			if len(short) < len(name) && only(sorted, turned, short) {
				name = short
			}
		}
		if ids[t.ID] > 1 || name[0] == '-' || strings.Contains(name, ":") {
			name = t.Source + ":" + t.ID
		}
		names[t.Source+":"+t.ID] = name
	}
	return names
}

// only reports whether one id alone begins or ends with a name: an end of one id
// may be the beginning of another.
func only(sorted, turned []string, name string) bool {
	begin, n := fits(sorted, name)
	_, m := fits(turned, reverse(name))
	if n == 1 && strings.HasSuffix(begin, name) {
		m-- // the same id
	}
	return n+m == 1
}

// shortest is the least length of a shortened id: the next tasks would make shorter ones ambiguous.
const shortest = 6

// needed is how many bytes of an id differ from its neighbours in a sorted list.
func needed(sorted []string, id string) int {
	i := sort.SearchStrings(sorted, id)
	n := shortest
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(sorted) {
			n = max(n, common(sorted[j], id)+1)
		}
	}
	return min(n, len(id))
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// fits counts the sorted names that begin with start, and gives the first.
func fits(sorted []string, start string) (first string, n int) {
	from := sort.SearchStrings(sorted, start)
	for from+n < len(sorted) && strings.HasPrefix(sorted[from+n], start) {
		n++
	}
	if n > 0 {
		first = sorted[from]
	}
	return first, n
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}
