package checkpointtest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// slots is how many lines that may change a file of the tests has; gap is how many
// lines stand between two of them, so that merges by lines see them apart.
const slots, gap = 4, 4

// text is a whole new file.
func (w *world) text() string {
	var b strings.Builder
	w.next++
	for i := range slots {
		fmt.Fprintf(&b, "slot %d holds %d\n", i, w.next)
		for j := range gap {
			fmt.Fprintf(&b, "still %d.%d\n", i, j)
		}
	}
	return b.String()
}

// slotted gives the text with another value in a slot, and the line before and after.
// A file that has no such slot has none.
func (w *world) slotted(text string, slot int) (was, now, out string, ok bool) {
	lines := strings.Split(text, "\n")
	prefix := fmt.Sprintf("slot %d holds ", slot)
	for i, l := range lines {
		if strings.HasPrefix(l, prefix) {
			w.next++
			was, now = l, fmt.Sprint(prefix, w.next)
			lines[i] = now
			return was, now, strings.Join(lines, "\n"), true
		}
	}
	return "", "", text, false
}

func file(data string) Node { return Node{Mode: 0o644, Data: data} }

// Places that the tests use. What lies in mine is only the user's.
var (
	places = []string{
		"a.txt", "b.txt", "src/c.go", "src/deep/d.txt", "notes.txt", "vendor/lib/e.txt", "vendor/lib/new.txt", "worktree/f.txt",
		"odd ü name.txt", "-dash", "new/dir/g.txt", "new/h.txt", "ignored/kept.log", "src/'quoted'.txt",
		"sub/s.txt", "sub/new.txt", "tree/src/c.go", "tree/new.txt",
	}
	mine = []string{"mine/one.txt", "mine/two.txt", "mine.txt", "ignored/mine.log", "vendor/lib/mine.txt", "sub/mine.txt", "tree/mine.txt"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// agentCall draws one call of the agent for a workspace as it is then.
func (w *world) agentCall(r *rand.Rand, now Tree) (c call, ok bool) {
	p := pick(r, places)
	n := now[p]
	plain := n != (Node{}) && !n.Link && n.Mode&0o200 != 0
	switch r.IntN(9) {
	case 0, 1: // a whole file, a new one or over another
		if n.Link || n != (Node{}) && !plain {
			return c, false
		}
		data := w.text()
		return call{name: "write_to_file", input: map[string]any{"path": p, "content": data}, paths: []string{p}, effect: func(t Tree) {
			m := fs.FileMode(0o644)
			if plain {
				m = n.Mode
			}
			t[p] = Node{Mode: m, Data: data}
		}}, true
	case 2, 3: // one line
		if !plain {
			return c, false
		}
		was, is, out, found := w.slotted(n.Data, r.IntN(slots))
		if !found {
			return c, false
		}
		return call{name: "apply_diff", input: map[string]any{"path": p, "diff": "<<<<<<< SEARCH\n-------\n" + was + "\n=======\n" + is + "\n>>>>>>> REPLACE"},
			paths: []string{p}, effect: func(t Tree) { t[p] = Node{Mode: n.Mode, Data: out} }}, true
	case 4: // a patch that moves, with a change; and one that makes or removes
		q, z := pick(r, places), pick(r, places)
		if !plain || now[q] != (Node{}) || q == z || p == z || now[z].Link || now[z] != (Node{}) && now[z].Mode&0o200 == 0 || clash(now, q) || clash(now, z) || path.Dir(p) == q || path.Dir(q) == p {
			return c, false
		}
		was, is, out, found := w.slotted(n.Data, r.IntN(slots))
		if !found {
			return c, false
		}
		patch := "*** Begin Patch\n*** Update File: " + p + "\n*** Move to: " + q + "\n@@\n-" + was + "\n+" + is + "\n"
		made, last := w.text(), now[z]
		if last == (Node{}) {
			patch += "*** Add File: " + z + "\n+" + strings.ReplaceAll(strings.TrimSuffix(made, "\n"), "\n", "\n+") + "\n"
		} else {
			patch += "*** Delete File: " + z + "\n"
		}
		return call{name: "apply_patch", input: map[string]any{"patch": patch + "*** End Patch"}, paths: []string{p, q, z}, effect: func(t Tree) {
			delete(t, p)
			t[q] = Node{Mode: n.Mode, Data: out}
			t.Set(z, Node{})
			if last == (Node{}) {
				t[z] = file(made)
			}
		}}, true
	default:
		return w.agentCommand(r, now)
	}
}

// clash reports whether a path cannot be made because a file or a link stands in its
// way.
func clash(now Tree, p string) bool {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if now[d] != (Node{}) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(keys(now)), func(q string) bool { return strings.HasPrefix(q, p+"/") })
}

func keys(t Tree) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range t {
			if !yield(k) {
				return
			}
		}
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// agentCommand draws a command line.
func (w *world) agentCommand(r *rand.Rand, now Tree) (c call, ok bool) {
	p, q := pick(r, places), pick(r, places)
	if strings.HasPrefix(p, "ignored/") || strings.HasPrefix(q, "ignored/") {
		return c, false // what is ignored and was never touched is not looked at
	}
	n := now[p]
	there := n != (Node{})
	var line string
	var effect func(Tree)
	switch r.IntN(8) {
	case 0, 1: // make or empty and write
		if n.Link || there && n.Mode&0o200 == 0 || clash(now, p) {
			return c, false
		}
		w.next++
		data := fmt.Sprintf("made by a command %d\n", w.next)
		line = "mkdir -p ./" + quoted(path.Dir(p)) + " && echo " + quoted(strings.TrimSuffix(data, "\n")) + " > ./" + quoted(p)
		effect = func(t Tree) {
			m := fs.FileMode(0o644)
			if there {
				m = n.Mode
			}
			t[p] = Node{Mode: m, Data: data}
		}
	case 2:
		if !there {
			return c, false
		}
		line, effect = "rm -f ./"+quoted(p), func(t Tree) { delete(t, p) }
	case 3:
		if !there || n.Link {
			return c, false
		}
		m := pick(r, []fs.FileMode{0o644, 0o755, 0o600, 0o444})
		line, effect = fmt.Sprintf("chmod %o ./%s", m, quoted(p)), func(t Tree) { t[p] = Node{Mode: m, Data: n.Data} }
	case 4:
		if !there || p == q || clash(now, q) {
			return c, false
		}
		line = "mkdir -p ./" + quoted(path.Dir(q)) + " && mv -f ./" + quoted(p) + " ./" + quoted(q)
		effect = func(t Tree) { delete(t, p); t[q] = n }
	case 5, 6: // in place, of the same size
		if !there || n.Link || !strings.Contains(n.Data, "holds") {
			return c, false
		}
		line = "sed -i s/holds/HOLDS/ ./" + quoted(p)
		effect = func(t Tree) { t[p] = Node{Mode: n.Mode, Data: strings.ReplaceAll(n.Data, "holds", "HOLDS")} }
	case 7:
		if clash(now, q) || strings.Contains(q, "/") {
			return c, false
		}
		w.next++
		to := fmt.Sprintf("src/c.go.%d", w.next%3)
		line, effect = "ln -sfn "+quoted(to)+" ./"+quoted(q), func(t Tree) { t[q] = Node{Link: true, Data: to} }
	}
	return call{name: "execute_command", input: map[string]any{"command": line}, command: true, effect: effect}, true
}

// user does something with the files or with git, as a person does beside the agent.
// Half of it concerns files that the task knows: there are the conflicts.
func (w *world) user(r *rand.Rand, repository bool, tracked []string) {
	w.t.Helper()
	now := w.tree()
	p := pick(r, slices.Concat(places, mine, mine))
	if len(tracked) > 0 && r.IntN(2) == 0 {
		p = pick(r, tracked)
	}
	n := now[p]
	plain := n != (Node{}) && !n.Link
	kind := r.IntN(13)
	if kind > 8 && !repository {
		kind -= 6
	}
	switch kind {
	case 0, 1, 2: // one line, which a merge can tell from the agent's
		if _, _, out, ok := w.slotted(n.Data, r.IntN(slots)); plain && ok {
			w.note("the user changes a line of %q", p)
			w.put(p, Node{Mode: n.Mode, Data: out})
		}
	case 3, 4:
		if n.Link || clash(now, p) {
			return
		}
		w.note("the user writes %q", p)
		w.put(p, file(w.text()))
	case 5:
		w.note("the user removes %q", p)
		w.put(p, Node{})
	case 6:
		if plain {
			m := pick(r, []fs.FileMode{0o644, 0o755, 0o640})
			w.note("the user makes %q %o", p, m)
			w.put(p, Node{Mode: m, Data: n.Data})
		}
	case 7:
		q := pick(r, append(mine, places...))
		if n != (Node{}) && now[q] == (Node{}) && !clash(now, q) {
			w.note("the user moves %q to %q", p, q)
			w.put(p, Node{})
			w.put(q, n)
		}
	case 8: // away and back with the same bytes: nothing happened
		if plain {
			w.note("the user writes %q anew with the same bytes", p)
			w.put(p, n)
		}
	case 9, 10:
		w.git("", "add", "-A", "--", ".")
		w.git("", "commit", "-q", "-m", "work")
	case 11:
		w.next++
		w.git("", "checkout", "-q", "-b", fmt.Sprintf("branch%d", w.next))
	case 12:
		w.git("", "stash", "-q")
		if r.IntN(2) == 0 {
			w.git("", "stash", "pop", "-q")
		}
	}
}
