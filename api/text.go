package api

import (
	"fmt"
	"strings"
)

// SizeText writes a number of bytes for people: 950 B, 34.1 KB, 1.2 MB.
func SizeText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Shorten cuts a text to at most most bytes, which hold the mark of the cut, too. It splits no character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// ShellWord quotes a word of a command that a person copies, so that a shell reads it as one word: a folder of another
// tool, and so its task, can have any name.
func ShellWord(word string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/~"
	if word != "" && word[0] != '~' && word[0] != '-' && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Plural writes a number of things: "1 task", "2 tasks".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Nearest returns the name that a mistyped one most likely means: one that begins with it, or that one or two slips
// turn into it. It is "" when none is near.
func Nearest(name string, known []string) string {
	best, least := "", 3
	if len(name) < 6 {
		least = 2
	}
	for _, k := range known {
		d := Distance(name, k)
		if len(name) > 1 && strings.HasPrefix(k, name) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// Distance returns the smallest number of letters to insert, remove, change or swap with the next one, to turn a into
// b.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			d := rows[i][j]
			if x[i] != y[j] {
				d = 1 + min(d, rows[i][j+1], rows[i+1][j])
			}
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}
