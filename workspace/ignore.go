package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// IgnoreFile is the name of the rules file in the root. Files of that name
// further down mean nothing.
const IgnoreFile = ".rooignore"

// maxIgnore bounds the rules file in bytes.
const maxIgnore = 1 << 20

// Ignore is a compiled set of gitignore rules. The zero value and nil hide
// nothing. It never changes after it was made.
type Ignore struct{ rules []rule }

// ParseIgnore compiles the text of a gitignore file. It cannot fail: a line that
// makes no sense matches nothing, as in git. Unlike git, a bracket expression
// cannot reach over a "/", and one character is a character, not a byte.
func ParseIgnore(text string, foldCase bool) *Ignore {
	ig := &Ignore{}
	for _, line := range splitLines(text) {
		if r, ok := parseRule(line, foldCase); ok {
			ig.rules = append(ig.rules, r)
		}
	}
	return ig
}

// Hides reports whether a path (relative, "/" between names, no "." or "..") is
// hidden, itself or through a folder that holds it. A file in a hidden folder
// cannot be shown again by a later rule, as in git.
func (ig *Ignore) Hides(rel string, dir bool) bool {
	if ig == nil || len(ig.rules) == 0 {
		return false
	}
	parts := splitPath(rel)
	for n := 1; n <= len(parts); n++ {
		if ig.verdict(parts[:n], n < len(parts) || dir) > 0 {
			return true
		}
	}
	return false
}

// Decide judges a single name without looking at its parents: +1 hidden,
// -1 shown again by a "!" rule, 0 not mentioned. Walkers that go from the top
// down use it, with the rules of several files.
func (ig *Ignore) Decide(rel string, dir bool) int {
	if ig == nil {
		return 0
	}
	return ig.verdict(splitPath(rel), dir)
}

func (ig *Ignore) verdict(parts []string, dir bool) int {
	for i := len(ig.rules) - 1; i >= 0; i-- {
		r := &ig.rules[i]
		if r.match(parts, dir) {
			if r.negate {
				return -1
			}
			return 1
		}
	}
	return 0
}

// rulesFile is .rooignore as it was read last.
type rulesFile struct {
	rules *Ignore // nil = never read
	text  []byte
	state FileState // without hash; zero when there is no file
	// statSettleMS: the file had been left alone for so long when it was read that a
	// later change must show in its times.
	settled bool
}

// settling is for how long after a change the times of a file are not trusted:
// another change may get the same ones.
const settling = 2 * time.Second

// Ignore gives the rules of .rooignore as they are on disk now. No file or an
// empty one means no rules; otherwise the file hides itself too. If the file is
// there and cannot be read this is an error, because then it is unknown what the file hides.
func (w *Workspace) Ignore() (*Ignore, error) {
	rules, err := w.ignore()
	if err != nil {
		return nil, fmt.Errorf("read %s of workspace %s: %w; nothing is opened until it can be read", IgnoreFile, w.root, err)
	}
	return rules, nil
}

func (w *Workspace) ignore() (*Ignore, error) {
	name := join(w.root, IgnoreFile)
	info, err := os.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := &w.rules
	if err != nil {
		if last.rules == nil || last.state != (FileState{}) {
			*last = rulesFile{rules: &Ignore{}}
		}
		return last.rules, nil
	}
	state := stateOf("", info, "")
	if last.rules != nil && last.settled && state.SameStat(last.state) {
		return last.rules, nil
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	if info.Size() > maxIgnore {
		return nil, fmt.Errorf("it is larger than %d bytes", maxIgnore)
	}
	now := time.Now()
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		*last = rulesFile{rules: &Ignore{}}
		return last.rules, nil
	}
	if err != nil {
		return nil, err
	}
	changed := time.Unix(0, max(state.MTime, state.CTime))
	fresh := rulesFile{text: text, state: state, settled: state.CTime != 0 && now.Sub(changed) > settling}
	switch {
	case last.rules != nil && last.state != (FileState{}) && bytes.Equal(last.text, text):
		fresh.rules = last.rules
	case len(text) == 0:
		fresh.rules = &Ignore{}
	default:
		fresh.rules = ParseIgnore(string(text)+"\n"+IgnoreFile, true)
	}
	*last = fresh
	return fresh.rules, nil
}

var protected = ParseIgnore(".git\nHEAD\n.rooignore\n.roomodes\n.roorules*\n.clinerules*\n.roo/**\n.vscode/**\n*.code-workspace\n.rooprotected\nAGENTS.md\nAGENT.md\n.agents/**\n", true)

// Protected reports whether a path (relative to the root, "/" between names) is
// one that steers agents, editors or git, and so is write-protected.
func Protected(rel string) bool {
	return protected.Hides(rel, false) || protected.Hides(plainNames(rel), false)
}

// Any reports whether there are rules at all.
func (ig *Ignore) Any() bool { return ig != nil && len(ig.rules) > 0 }
