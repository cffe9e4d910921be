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
