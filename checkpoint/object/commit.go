package object

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Commit is one recorded tree.
type Commit struct {
	Tree    ID
	Parents []ID
	Author  string // "Name <address>"; empty: Roost itself
	At      time.Time
	Message string
}

const author = "Roost <roost@localhost>"

// encodeCommit gives a commit's bytes. Times are kept in whole seconds, in UTC.
func encodeCommit(c Commit) ([]byte, error) {
	var b bytes.Buffer
	if !c.Tree.Valid() {
		return nil, fmt.Errorf("write a commit: %q is not a tree's name", string(c.Tree))
	}
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		if !p.Valid() {
			return nil, fmt.Errorf("write a commit: %q is not a parent's name", string(p))
		}
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	who := person(c.Author)
	at := max(c.At.Unix(), 0) // git knows no time before 1970
	fmt.Fprintf(&b, "author %s %d +0000\ncommitter %s %d +0000\n\n", who, at, who, at)
	message := strings.ReplaceAll(c.Message, "\x00", "")
	b.WriteString(message)
	if !strings.HasSuffix(message, "\n") {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// person gives a name and an address that git takes.
func person(s string) string {
	name, rest, ok := strings.Cut(s, "<")
	address, _, closed := strings.Cut(rest, ">")
	clean := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, s))
	}
	name, address = clean(name), clean(address)
	if !ok || !closed || name == "" {
		return author
	}
	return name + " <" + address + ">"
}

// ParseCommit reads a commit's bytes; lines that it does not know are passed over.
func ParseCommit(data []byte) (Commit, error) {
	var c Commit
	head, message, _ := bytes.Cut(data, []byte("\n\n"))
	c.Message = string(message)
	for line := range bytes.SplitSeq(head, []byte{'\n'}) {
		key, value, _ := bytes.Cut(line, []byte{' '})
		switch string(key) {
		case "tree":
			if c.Tree != "" {
				return Commit{}, fmt.Errorf("a commit %w: it has two trees", ErrDamaged)
			}
			c.Tree = ID(value)
			if !c.Tree.Valid() {
				return Commit{}, fmt.Errorf("a commit %w: %q is no tree", ErrDamaged, clip(value))
			}
		case "parent":
			if !ID(value).Valid() {
				return Commit{}, fmt.Errorf("a commit %w: %q is no parent", ErrDamaged, clip(value))
			}
			c.Parents = append(c.Parents, ID(value))
		case "author":
			c.Author, c.At = parsePerson(string(value))
		}
	}
	if c.Tree == "" {
		return Commit{}, fmt.Errorf("a commit %w: it has no tree", ErrDamaged)
	}
	return c, nil
}

func parsePerson(s string) (who string, at time.Time) {
	end := strings.LastIndexByte(s, '>')
	if end < 0 {
		return s, time.Time{}
	}
	seconds, _, _ := strings.Cut(strings.TrimSpace(s[end+1:]), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n >= 0 && n < 1<<40 {
		at = time.Unix(n, 0).UTC()
	}
	return s[:end+1], at
}
