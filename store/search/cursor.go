package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// spot is a place in the order of all hits: behind so many of a task's.
type spot struct {
	ts   int64
	mark string // "" is before all
	n    int
}

func (s spot) String() string { return fmt.Sprintf("%d.%s.%d", s.ts, s.mark, s.n) }

// ValidCursor reports whether a text is a cursor as a search gives it, or none.
func ValidCursor(text string) bool {
	_, err := readSpot(text)
	return err == nil
}

func readSpot(cursor string) (s spot, err error) {
	if cursor == "" {
		return s, nil
	}
	bad := fmt.Errorf("cursor %q: not one that a search gave", cursor)
	fields := strings.Split(cursor, ".")
	if len(fields) != 3 || len(fields[1]) != 2*markBytes {
		return s, bad
	}
	ts, err1 := strconv.ParseInt(fields[0], 10, 64)
	_, err2 := hex.DecodeString(fields[1])
	n, err3 := strconv.Atoi(fields[2])
	if err1 != nil || err2 != nil || err3 != nil || n < 0 {
		return s, bad
	}
	return spot{ts, fields[1], n}, nil
}

const markBytes = 6

// mark gives tasks of the same time an order.
func (c *candidate) mark() string {
	if c.name == "" {
		sum := sha256.Sum256([]byte(catalogKey(c.ref)))
		c.name = hex.EncodeToString(sum[:markBytes])
	}
	return c.name
}

// byTime puts the newest task first.
func byTime(a, b *candidate) int {
	if d := cmp.Compare(b.ts, a.ts); d != 0 {
		return d
	}
	return strings.Compare(a.mark(), b.mark())
}

// behind reports whether a place is behind all hits of a task.
func (s spot) behind(c *candidate) bool {
	return s.mark != "" && (s.ts < c.ts || s.ts == c.ts && s.mark > c.mark())
}

// given is how many hits of a task lie before a place that is not behind it.
func (s spot) given(c *candidate) int {
	if s.mark != "" && s.ts == c.ts && s.mark == c.mark() {
		return s.n
	}
	return 0
}
